#!/usr/bin/python3
"""Draws what reads of a map cost as more and more of its keys are changed.

    make bench NAME=shared_map
    bench/shared_map_plot.py build/bench/shared_map.json

Writes plots/shared_map_changes.png beside it. Needs Debian's python3-matplotlib. `make map-plots` does all of it.
"""

import json
import os
import sys

try:
    import matplotlib
except ModuleNotFoundError:
    sys.exit("shared_map_plot.py: needs Debian's python3-matplotlib; `make map-plots` installs it")

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  The backend has to be chosen first.

PREFIX = "changes_"
KINDS = (
    ("dependent", "get, each key known only from the value before", "tab:red"),
    ("independent", "get", "tab:blue"),
    ("batch", "batch of 64 with copies, a key", "tab:green"),
    ("miss", "get of an absent key", "tab:gray"),
)


def draw(figures, path):
    """One line for each kind of read, from the least to the greatest round."""
    picture, axes = plt.subplots(figsize=(8, 5))
    for metric, label, color in KINDS:
        points = sorted(
            (int(figure["benchmark"].removeprefix(PREFIX)), *(figure[name] for name in ("median", "min", "max")))
            for figure in figures
            if figure["metric"] == metric
        )
        shares, medians, least, greatest = zip(*points)
        axes.plot(shares, medians, marker="o", label=label, color=color)
        axes.fill_between(shares, least, greatest, color=color, alpha=0.2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("keys changed since the last fold, %")
    axes.set_ylabel("ns a read")
    axes.set_title(f"Reads of a map of {figures[0]['keys']:,} keys, fixed layout")
    axes.grid(alpha=0.3)
    picture.legend(loc="lower center", ncols=2, fontsize="small", frameon=False)
    picture.tight_layout(rect=(0, 0.09, 1, 1))  # Below it the legend, which would hide a line.
    picture.savefig(path, dpi=120)
    plt.close(picture)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    source = sys.argv[1]
    try:
        with open(source, encoding="utf-8") as file:
            measured = json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"shared_map_plot.py: {source}: {error}")
    figures = [figure for figure in measured if figure["benchmark"].startswith(PREFIX)]
    if not figures:
        sys.exit(f"shared_map_plot.py: {source}: it has no figures of changes")
    directory = os.path.join(os.path.dirname(source), "plots")
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, "shared_map_changes.png")
    draw(figures, path)
    print(path)


if __name__ == "__main__":
    main()
