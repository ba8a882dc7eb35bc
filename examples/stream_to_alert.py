"""From a log to an alert: a made-up server load with a daily pattern and a fault, its predictions, bands and alerts.

    python examples/stream_to_alert.py [folder]

It writes load.csv into the folder, runs `trueonline predict` on it as anyone would, and draws two pictures from the files:
streams.png, and streams.svg, which moves.
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


def film(path, x, found, alerts, days=(9.25, 11.25), seconds=16, hold=0.15):
    """An animated SVG: the signal as it arrives, the prediction and the band one horizon ahead of it, and the alerts."""
    first, last = (round(day * A_DAY) for day in days)
    wide, high, left, top, bottom = 900, 340, 44, 58, 300
    ahead = round(HORIZON / 300.0)  # the weights of the predicted mean have their centre one horizon ahead
    begin, step = np.datetime64("2024-01-01T00:00"), np.timedelta64(5, "m")

    def px(t):
        return left + (t - first) / (last - first) * (wide - left - 16)

    def points(times, values):
        return " ".join(
            f"{px(t):.1f},{bottom - (bottom - top) * v / 100.0:.1f}" for t, v in zip(times, values, strict=True)
        )

    shown = np.arange(first, last)
    later = np.arange(first, last - ahead)
    low, high_end, mean = (found[f"load@1h{end}"][first : last - ahead] for end in (".low", ".high", ""))
    band = points(np.concatenate([later, later[::-1]]) + ahead, np.concatenate([low, high_end[::-1]]))
    parts = []
    for v in (0, 50, 100):
        y = bottom - (bottom - top) * v / 100.0
        parts.append(f'<text x="{left - 8}" y="{y + 5}" text-anchor="end">{v}</text>')
        parts.append(f'<path d="M{left} {y}H{wide - 16}" stroke="#ddd"/>')
    parts += [
        f'<g clip-path="url(#ahead)"><polygon points="{band}" fill="#009E73" opacity="0.2"/>',
        f'<polyline points="{points(later + ahead, mean)}" fill="none" stroke="#00785A" stroke-width="2"/></g>',
        '<g clip-path="url(#now)">',
        f'<polyline fill="none" stroke="#777" stroke-width="1.2" points="{points(shown, x[first:last])}"/></g>',
    ]
    styles = []
    for alert in alerts:
        t = int((np.datetime64(alert["time"]) - begin) / step)
        if first < t < last:
            at = 100.0 * (1.0 - hold) * (t - first) / (last - first)
            name = f"alert-{t}"
            styles.append(
                f"@keyframes {name} {{ 0%, {at:.1f}% {{ opacity: 0 }} {at + 0.1:.1f}%, 100% {{ opacity: 1 }} }}"
            )
            styles.append(f".{name} {{ animation: {name} {seconds}s linear infinite }}")
            parts.append(
                f'<g class="{name}" fill="#B3261E"><rect x="{px(t):.1f}" y="{top}" width="2" '
                f'height="{bottom - top}"/><text x="{px(t) + 8:.1f}" y="{top + 16}" font-weight="600">alert</text></g>'
            )
    for t in range(-(-first // 72) * 72, last, 72):
        when = (begin + t * step).astype(datetime.datetime)
        parts.append(f'<text x="{px(t):.1f}" y="{bottom + 22}" text-anchor="middle">{when:%a %H:%M}</text>')
    legend = (
        ("#777", "the signal"),
        ("#00785A", "predicted mean of the coming hour"),
        ("#BFE6D9", "90 % band"),
        ("#B3261E", "alert"),
    )
    for i, (colour, words) in enumerate(legend):
        parts.append(f'<rect x="{left + (0, 130, 420, 540)[i]}" y="18" width="22" height="6" fill="{colour}"/>')
        parts.append(f'<text x="{left + (0, 130, 420, 540)[i] + 30}" y="26">{words}</text>')
    clips = "".join(
        f'<clipPath id="{name}"><rect class="reveal" x="{left}" width="{px(last + more) - left:.1f}" height="{high}"/></clipPath>'
        for name, more in (("now", 0), ("ahead", ahead))
    )
    style = (
        "text { font: 14px system-ui, sans-serif; fill: #333 } g text { fill: inherit } "
        f".reveal {{ transform-origin: {left}px 0; animation: reveal {seconds}s linear infinite }} "
        f"@keyframes reveal {{ from {{ transform: scaleX(0) }} {100 * (1 - hold):g}%, to {{ transform: scaleX(1) }} }} "
        + " ".join(styles)
        + " @media (prefers-reduced-motion: reduce) { * { animation: none !important } }"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" role="img">'
    title = "<title>A signal arrives, with its prediction, the band and an alert where something broke</title>"
    paper = f'<rect width="{wide}" height="{high}" rx="8" fill="#fff"/>'
    text = "\n".join([head, title, f"<style>{style}</style>", f"<defs>{clips}</defs>", paper, *parts, "</svg>", ""])
    write_whole(path, lambda file: file.write(text.encode()))


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
    film(folder / "streams.svg", values, read(folder / "predictions.csv"), alerts)
    print(f"The pictures are {folder / 'streams.png'} and {folder / 'streams.svg'}.")


if __name__ == "__main__":
    main()
