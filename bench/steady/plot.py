#!/usr/bin/python3
"""Draws what steady_bench measured: the series of half an hour, or costs against the number of keys.

    build/bench/steady_bench --output build/bench/steady.json
    build/bench/steady_bench --growth --output build/bench/growth.json
    bench/steady/plot.py build/bench/steady.json build/bench/growth.json

Writes plots/<name of the file>.png beside each. Needs Debian's python3-matplotlib.
"""

import json
import os
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  The backend has to be chosen first.

MIB = 1 << 20
PAUSE_MS_MOST = 50
SPACE_MOST = 1.5


def draw_steadiness(measured, path):
    """Four pictures below each other, over the same minutes."""
    series = measured["series"]
    minutes = [(second + 1) / 60 for second in range(len(series["puts"]))]
    picture, (puts, longest, space, memory) = plt.subplots(4, 1, figsize=(10, 12), sharex=True)

    puts.plot(minutes, [count / 1e3 for count in series["puts"]], color="tab:red", linewidth=0.6)
    puts.set_ylim(bottom=0)
    puts.set_ylabel("k puts/s")

    longest.plot(
        minutes,
        [nanoseconds / 1e6 for nanoseconds in series["longest_ns"]],
        color="tab:red",
        linestyle="none",
        marker=".",
        markersize=2,
    )
    longest.axhline(PAUSE_MS_MOST, color="black", linestyle="--", linewidth=1)
    longest.set_yscale("log")
    longest.set_ylabel("longest put of a second, ms")

    live = measured["live_bytes"]
    for name, label, color in (
        ("disk_bytes", "directory", "tab:red"),
        ("table_bytes", "tables in use", "tab:blue"),
        ("level0_bytes", "of them level 0", "tab:orange"),
        ("log_bytes", "log", "tab:green"),
    ):
        values = [value / live for value in series[name]]
        space.plot(minutes, values, label=label, color=color, linewidth=0.8)
    space.axhline(SPACE_MOST, color="black", linestyle="--", linewidth=1)
    space.set_ylim(bottom=0)
    space.set_ylabel("bytes over live keys and values")
    space.legend(fontsize="small", loc="lower right")

    for name, label, color in (
        ("anonymous_bytes", "anonymous, beyond the empty database", "tab:red"),
        ("memtable_bytes", "memtables, as counted", "tab:orange"),
        ("cache_bytes", "cache, as counted", "tab:blue"),
        ("table_metadata_bytes", "indexes and filters, as counted", "tab:green"),
    ):
        values = [value / MIB for value in series[name]]
        memory.plot(minutes, values, label=label, color=color, linewidth=0.8)
    memory.axhline(measured["memory_budget"] / MIB, color="black", linestyle="--", linewidth=1)
    memory.set_ylim(bottom=0)
    memory.set_ylabel("memory, MiB")
    memory.set_xlabel("minutes")
    memory.legend(fontsize="small", loc="center right")

    puts.set_title(
        f"Overwriting {measured['keys']:,} keys with {measured['memory_budget'] // MIB} MiB of memory;"
        " dashed: the gates"
    )
    for axes in (puts, longest, space, memory):
        axes.grid(alpha=0.3)
        axes.set_xlim(0, minutes[-1])
    picture.tight_layout()
    picture.savefig(path, dpi=120)
    plt.close(picture)


def draw_growth(figures, path):
    """One line for each benchmark, from the least to the greatest run."""
    # A merge that found nothing to do took no time, which has no place on this scale.
    figures = [figure for figure in figures if figure["unit"] == "ns" and figure["min"] > 1]
    picture, axes = plt.subplots(figsize=(8, 6))
    for benchmark in dict.fromkeys(figure["benchmark"] for figure in figures):
        points = sorted(
            (figure["keys"], figure["median"], figure["min"], figure["max"])
            for figure in figures
            if figure["benchmark"] == benchmark
        )
        keys, medians, least, greatest = zip(*points)
        (line,) = axes.plot(keys, medians, marker="o", label=benchmark)
        axes.fill_between(keys, least, greatest, color=line.get_color(), alpha=0.2)
    sizes = sorted({figure["keys"] for figure in figures})
    axes.set_xscale("log")
    axes.set_xticks(sizes, labels=[f"{size / 1e6:g} M" for size in sizes])
    axes.minorticks_off()
    axes.set_yscale("log")
    axes.set_xlabel("keys")
    axes.set_ylabel("ns an operation")
    budget = figures[0]["memory_budget"]
    memory = f"{budget // MIB} MiB" if budget else "the default budget"
    axes.set_title(f"What an operation costs, with {memory} of memory")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    picture.tight_layout()
    picture.savefig(path, dpi=120)
    plt.close(picture)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    for source in sys.argv[1:]:
        try:
            with open(source, encoding="utf-8") as file:
                measured = json.load(file)
        except (OSError, ValueError) as error:
            sys.exit(f"plot.py: {source}: {error}")
        directory = os.path.join(os.path.dirname(source), "plots")
        os.makedirs(directory, exist_ok=True)
        name = os.path.splitext(os.path.basename(source))[0] + ".png"
        path = os.path.join(directory, name)
        if isinstance(measured, dict):
            draw_steadiness(measured, path)
        else:
            draw_growth(measured, path)
        print(path)


if __name__ == "__main__":
    main()
