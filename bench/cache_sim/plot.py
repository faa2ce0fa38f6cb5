#!/usr/bin/python3
"""Draws miss ratio against cache size, one picture a trace.

    build/bench/cache_sim --curve --output build/bench/curve.json
    bench/cache_sim/plot.py build/bench/curve.json [DIRECTORY]

Writes DIRECTORY/<trace>.png (by default beside the JSON). Needs Debian's python3-matplotlib.
"""

import json
import os
import re
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  The backend has to be chosen first.

# Ours stand out; the bound is what nobody can pass.
STYLES = {
    "basalt": {"color": "tab:red", "linewidth": 2.4, "marker": "o", "zorder": 5},
    "basalt-s3": {"color": "tab:orange", "linewidth": 2.4, "marker": "s", "zorder": 4},
    "lru": {"color": "black", "linewidth": 1.8},
    "lazy-lru": {"color": "black", "linestyle": ":"},
    "clock": {"color": "tab:gray"},
    "sieve": {"color": "tab:green"},
    "s3fifo": {"color": "tab:blue"},
    "w-tinylfu": {"color": "tab:purple"},
    "belady": {"color": "tab:gray", "linestyle": "--"},
}


def draw(trace, figures, path):
    """One picture: a line for each policy."""
    picture, axes = plt.subplots(figsize=(8, 5))
    for policy in dict.fromkeys(figure["policy"] for figure in figures):
        points = sorted(
            (100 * figure["held_bytes"] / figure["footprint_bytes"], figure["miss_ratio"])
            for figure in figures
            if figure["policy"] == policy
        )
        axes.plot(*zip(*points), label=policy, **STYLES.get(policy, {}))
    sizes = sorted({100 * figure["size"] for figure in figures})
    axes.set_xscale("log")
    axes.set_xticks(sizes, labels=[f"{size:g}" for size in sizes])
    axes.minorticks_off()
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("objects held, % of the footprint's bytes")
    axes.set_ylabel("miss ratio")
    axes.set_title(f"{trace}: {figures[0]['requests']:,} requests")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    picture.tight_layout()
    picture.savefig(path, dpi=120)
    plt.close(picture)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.strip())
    source = sys.argv[1]
    directory = sys.argv[2] if len(sys.argv) == 3 else os.path.dirname(source) or "."
    try:
        with open(source, encoding="utf-8") as file:
            figures = json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"plot.py: {source}: {error}")
    os.makedirs(directory, exist_ok=True)
    for trace in dict.fromkeys(figure["trace"] for figure in figures):
        name = re.sub(r"[^\w.-]+", "_", trace).strip("_")
        path = os.path.join(directory, name + ".png")
        draw(trace, [figure for figure in figures if figure["trace"] == trace], path)
        print(path)


if __name__ == "__main__":
    main()
