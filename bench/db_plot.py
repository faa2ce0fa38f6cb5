#!/usr/bin/env python3
"""Draws the throughput of the database and of its peers as an SVG.

    make bench NAME=db
    bench/db_plot.py build/bench/db.json build/bench/db.svg
    bench/db_plot.py --check docs/figures/db.json docs/figures/db.svg    fails if the picture is not drawn from the figures

The README shows docs/figures/db.svg. docs/figures/db.json has the figures of the tables in docs/benchmarks.md, in the
format of build/bench/db.json.
"""

import json
import sys

BENCHMARKS = (
    ("fillrandom", "put, random order"),
    ("fillsync", "put that survives a power cut"),
    ("readrandom", "get, in cache"),
    ("readseq", "scan, a record"),
    ("seekrandom", "seek and 10 steps"),
    ("ycsb_e", "YCSB E, short scans"),
)
SUBJECTS = (
    ("basalt", "Basalt", "#2f6fb0"),
    ("leveldb", "LevelDB", "#e0a04a"),
    ("rocksdb", "RocksDB", "#c4624f"),
    ("lmdb", "LMDB", "#8c8c8c"),
)
LEFT, TOP, BAR, GROUP, WIDTH, ONE = 200, 44, 13, 68, 760, 330  # Pixels; ONE is the length of Basalt's bars.


def throughputs(figures):
    """Operations a second by (benchmark, subject)."""
    return {
        (figure["benchmark"], figure["subject"]): figure["median"]
        for figure in figures
        if figure["metric"] == "throughput"
    }


def amount(value):
    """A number of operations with three digits: 3.32 M, 8.3 k."""
    for factor, unit in ((1e6, " M"), (1e3, " k")):
        if value >= factor:
            return f"{value / factor:.3g}{unit}"
    return f"{value:.3g}"


def draw(figures):
    """Groups of bars, each group in proportion to Basalt's bar."""
    measured = throughputs(figures)
    height = TOP + GROUP * len(BENCHMARKS) + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for index, (_, name, color) in enumerate(SUBJECTS):
        x = LEFT + 100 * index
        lines.append(f'<rect x="{x}" y="14" width="12" height="12" fill="{color}"/>')
        lines.append(f'<text x="{x + 18}" y="24">{name}</text>')
    lines.append(f'<text x="{WIDTH - 10}" y="24" text-anchor="end" fill="#555">operations a second</text>')
    for row, (benchmark, label) in enumerate(BENCHMARKS):
        y = TOP + GROUP * row
        lines.append(f'<text x="{LEFT - 12}" y="{y + 2 * BAR + 4}" text-anchor="end">{label}</text>')
        for index, (subject, _, color) in enumerate(SUBJECTS):
            value = measured.get((benchmark, subject))
            if value is None:
                continue
            length = max(1, round(ONE * value / measured[benchmark, "basalt"]))
            top = y + BAR * index
            lines.append(f'<rect x="{LEFT}" y="{top}" width="{length}" height="{BAR - 2}" fill="{color}"/>')
            lines.append(f'<text x="{LEFT + length + 6}" y="{top + BAR - 3}" font-size="11">{amount(value)}</text>')
    lines.append("</svg>")
    return "\n".join(lines) + "\n"


def main(arguments):
    check = arguments[:1] == ["--check"]
    arguments = arguments[check:]
    if len(arguments) != 2:
        sys.exit(__doc__.strip())
    source, picture = arguments
    with open(source, encoding="utf-8") as file:
        drawn = draw(json.load(file))
    if check:
        with open(picture, encoding="utf-8") as file:
            if file.read() != drawn:
                sys.exit(f"{picture} is not drawn from {source}: run bench/db_plot.py {source} {picture}")
        return
    with open(picture, "w", encoding="utf-8") as file:
        file.write(drawn)


if __name__ == "__main__":
    main(sys.argv[1:])
