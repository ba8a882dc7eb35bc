"""From a log to an alert: a made-up server load with a daily pattern and a fault, its predictions, bands and alerts.

    python examples/stream_to_alert.py [folder]

It writes load.csv into the folder, runs `trueonline predict` on it as anyone would, and draws streams.png from the files.
"""

import argparse
import csv
import datetime
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from trueonline.files import write_whole
from trueonline.look import figure, look

DAYS, A_DAY, FAULT = 14, 288, 10 * 288 + 110  # a sample every five minutes; the fault begins on the eleventh day
HORIZON = 3600.0


def load(seed=0):
    """The load: busy hours, quieter weekends, noise, and a fault in which it falls to half for two hours."""
    rng = np.random.default_rng(seed)
    t = np.arange(DAYS * A_DAY)
    hour = t % A_DAY / A_DAY * 24.0
    busy = np.exp(-(((hour - 11.0) / 2.5) ** 2)) + 0.8 * np.exp(-(((hour - 16.0) / 2.0) ** 2))
    weekend = (t // A_DAY) % 7 >= 5
    x = 20.0 + 50.0 * busy * np.where(weekend, 0.4, 1.0) + 2.0 * rng.standard_normal(len(t))
    x[FAULT : FAULT + 24] *= 0.5
    return x


def write_log(path, values):
    begin = datetime.datetime(2024, 1, 1)  # a Monday
    rows = [((begin + datetime.timedelta(minutes=5 * i)).isoformat(" "), f"{x:.2f}") for i, x in enumerate(values)]
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("time", "load"), *rows])


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name] or "nan") for row in rows]) for name in rows[0] if name != "time"}


def came_true(x):
    """The mean over the coming horizon."""
    gamma, out = np.exp(-300.0 / HORIZON), np.full(len(x), x[-1])
    for t in range(len(x) - 2, -1, -1):
        out[t] = (1.0 - gamma) * x[t + 1] + gamma * out[t + 1]
    return out


def draw(path, x, found, alerts):
    begin = np.datetime64("2024-01-01T00:00")
    times = begin + np.arange(len(x)) * np.timedelta64(5, "m")
    with look():
        picture, axes = figure(2, 1, width=9.0, height=5.4)
        for axis, days, title in zip(
            axes[:, 0], ((0, 4), (8, 12)), ("the first days", "the days around the fault"), strict=True
        ):
            part = slice(days[0] * A_DAY, days[1] * A_DAY)
            axis.plot(times[part], x[part], color="0.75", linewidth=0.8, label="load")
            axis.fill_between(
                times[part],
                found["load@1h.low"][part],
                found["load@1h.high"][part],
                alpha=0.25,
                linewidth=0,
                label="90 % band",
            )
            axis.plot(times[part], found["load@1h"][part], linewidth=1.2, label="prediction: mean over the coming hour")
            axis.plot(times[part], came_true(x)[part], "k", linewidth=0.7, label="what came true")
            inside = [a for a in alerts if times[part][0] <= np.datetime64(a["time"]) <= times[part][-1]]
            for i, alert in enumerate(inside):
                axis.axvline(
                    np.datetime64(alert["time"]), color="tab:red", linewidth=1.0, label="alert" if i == 0 else None
                )
            axis.set_title(title, loc="left")
            axis.set_ylabel("load")
        handles, labels = axes[1, 0].get_legend_handles_labels()
        picture.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
        write_whole(path, lambda file: picture.savefig(file, format="png", dpi=110))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=".", type=Path, help="where the files go; by default here")
    folder = parser.parse_args().folder
    values = load()
    write_log(folder / "load.csv", values)
    words = [
        "predict",
        folder / "load.csv",
        "--time",
        "time",
        "--target",
        "load",
        "--horizon",
        "1h",
        "--explain",
        "--fresh",
    ]
    words += ["--out", folder / "predictions.csv", "--alerts", folder / "alerts.jsonl"]
    subprocess.run([sys.executable, "-m", "trueonline", *map(str, words)], check=True)
    alerts = [json.loads(line) for line in (folder / "alerts.jsonl").read_text().splitlines()]
    draw(folder / "streams.png", values, read(folder / "predictions.csv"), alerts)
    print(f"The picture is in {folder / 'streams.png'}.")


if __name__ == "__main__":
    main()
