"""The options that `trueonline predict` and `trueonline live` share."""

from __future__ import annotations

import re
from typing import Any

import click

from trueonline import catalog
from trueonline.cli import options
from trueonline.cli.stream_config import configured

SINGLE_METHODS = [row.name for row in catalog.METHODS.values() if row.horde]
PARAMETERS: dict[str, tuple[Any, Any, str]] = {  # of one learner: type, default, help
    "step_size": (float, 0.1, "α. It is divided by the number of active features, so that 1 goes all the way."),
    "trace_decay": (float, 0.9, "λ."),
    "tilings": (click.IntRange(1), 8, "Grids, shifted against each other."),
    "bins": (click.IntRange(1), 10, "Number of intervals of each signal."),
    "features": (int, 200_000, "Largest number of features; more tiles are hashed to it."),
    "tiles": (
        click.Choice(["joint", "pairs", "single"]),
        "joint",
        "Grids over all signals jointly, over each pair, or over each signal.",
    ),
}

stream_options = options.all_of(
    (
        click.argument("source", nargs=-1, required=True, callback=lambda context, option, names: one_or_several(names)),
        click.option(
            "--target", "targets", multiple=True, required=True, help="Signals to predict: names, separated by commas."
        ),
        click.option(
            "--signals",
            help="Signals that predictions use: names, separated by commas, or all (all numeric columns).  [default: the targets]",
        ),
        click.option(
            "--rate", help="Samples per second: 40, 40Hz; or 5min, 1/300. Without --time, times are computed from it."
        ),
        click.option(
            "--horizon",
            "horizons",
            multiple=True,
            help="How far ahead: 500ms, 90s, 15min, 1h, 1d, 20 samples; several with commas. A prediction is the mean of "
            "the coming values, in the signal's unit; the nearest values count most.  [default: 20 samples]",
        ),
        click.option(
            "--discount",
            "discounts",
            multiple=True,
            help="γ instead of a horizon: a number, or the name of a signal. A prediction is then the return, the discounted sum.",
        ),
        click.option(
            "--as",
            "meaning",
            type=click.Choice(["mean", "return"]),
            help="Predict the mean or the return.  [default: the mean with --horizon, the return with --discount]",
        ),
        click.option(
            "--coverage",
            default=0.9,
            show_default=True,
            type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
            help="Share of true values that bands should contain.",
        ),
        click.option(
            "--min", "minimum", type=float, help="No forecast is below it: 0 for counts.  [default: about the range seen]"
        ),
        click.option("--max", "maximum", type=float, help="No forecast is above it.  [default: about the range seen]"),
        click.option(
            "--method",
            default="auto",
            show_default=True,
            type=click.Choice(["auto", *SINGLE_METHODS]),
            metavar="METHOD",
            help=f"auto, a mixture of many small learners with nothing to tune; or one learner: {', '.join(SINGLE_METHODS)}.",
        ),
        *(
            click.option(f"--{name.replace('_', '-')}", type=kind, help=f"{text}  [one learner; default: {default}]")
            for name, (kind, default, text) in PARAMETERS.items()
        ),
        click.option(
            "--range",
            "ranges",
            multiple=True,
            metavar="NAME=LOW:HIGH",
            help="Bounds of a signal; may be repeated.  [one learner; default: they widen as values come]",
        ),
        click.option(
            "--by",
            metavar="COLUMN",
            help="A fleet: the column (MQTT, JSON: the key) that names the signal of a sample. Each signal is predicted by itself, "
            "and new ones may come at any time. file: each of several files is a signal; topic: each MQTT topic.",
        ),
        click.option(
            "--shard",
            metavar="I/N",
            callback=lambda context, option, text: shard(text),
            help="Part I of N of a fleet, by a hash of the names: the other parts run elsewhere. N: all N parts, by --engine dask.",
        ),
        click.option("--time", metavar="COLUMN", help="The column (MQTT, JSON: the key) with the times."),
        click.option(
            "--time-unit",
            default="s",
            show_default=True,
            type=click.Choice(["s", "ms", "us", "ns"]),
            help="Unit of the times, unless they are ISO 8601; ms for milliseconds since 1970.",
        ),
        click.option(
            "--time-format",
            metavar="FORM",
            help='Format of the times, if they are neither numbers nor ISO 8601: "%d.%m.%Y %H:%M".',
        ),
        click.option(
            "--max-gap",
            help="Nothing is learned across a longer gap: 90s, 15min.  [default: 10 samples or 3 horizons, whichever is longer]",
        ),
        click.option(
            "--missing",
            default="hold",
            show_default=True,
            type=click.Choice(["hold", "skip", "error"]),
            help="Missing values and NaN: use the last good value, leave the sample out, or stop.",
        ),
        click.option("--follow", is_flag=True, help="Wait for lines appended to a text file; with --by file, to all."),
        click.option("--out", metavar="FILE", help="Predictions: a .csv, .jsonl or .parquet file, or - to print them."),
        click.option(
            "--checkpoint",
            metavar="FILE",
            help="File to save the state to, and to resume from.  [default: OUT.checkpoint]",
        ),
        click.option(
            "--checkpoint-every",
            "--every",
            "every",
            help="Time between checkpoints, at least: 30s, 10min.  [default: 10 s to 1 h, at most 1 GB a day]",
        ),
        click.option(
            "--fresh",
            is_flag=True,
            help="Begin from scratch: replace the checkpoint and the files that --out and --alerts name.",
        ),
        click.option(
            "--mqtt-password-file",
            metavar="FILE",
            help="File with the password for a broker.  [default: $TRUEONLINE_MQTT_PASSWORD]",
        ),
        click.option(
            "--mqtt-ca", metavar="FILE", help="Certificates to check a mqtts:// broker with.  [default: the system's]"
        ),
        click.option(
            "--publish",
            metavar="URL",
            help="Send predictions to mqtt[s]://[user@]host[:port]/topic, alerts to topic/alerts.",
        ),
        click.option(
            "--alert",
            type=click.FloatRange(0.0, 1.0, min_open=True),
            help="Report incidents with a surprise of at least this, such as 0.99.",
        ),
        click.option("--alerts", metavar="FILE", help="Append alerts to a file of JSON lines.  [--alert is then 0.99]"),
        click.option(
            "--alert-command",
            metavar="COMMAND",
            help="Run this for each alert, without a shell: JSON on standard input, words in $TRUEONLINE_ALERT.",
        ),
        click.option(
            "--alert-webhook",
            metavar="URL",
            help="Post each alert as JSON to this address, and try again if that fails.",
        ),
        click.option("--quiet", is_flag=True, help="Print warnings and alerts only."),
        click.option(
            "--config",
            metavar="FILE.toml",
            is_eager=True,
            callback=lambda context, option, path: configured(context, path),
            help="A file with these options, and with settings of signals. Options on the command line take precedence.",
        ),
        click.option("--samples", "limit", type=click.IntRange(1), help="Stop after this many samples."),
    )
)


def one_or_several(names: tuple[str, ...]) -> str | tuple[str, ...]:
    """One source by its name, or several files."""
    return names[0] if len(names) == 1 else names


def shard(text: str | None) -> tuple[int, int]:
    """The part of a fleet, 0 for all parts, and how many parts there are."""
    if text is None:
        return 1, 1
    found = re.fullmatch(r"(?:([1-9]\d*)/)?([1-9]\d*)", text)
    if found and int(found[1] or 0) <= int(found[2]):
        return int(found[1] or 0), int(found[2])
    raise click.BadParameter(f"must be I/N, such as 1/4, or N with --engine dask, got {text!r}")
