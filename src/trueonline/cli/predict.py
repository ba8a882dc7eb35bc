"""`trueonline predict`: predict the signals of a stream."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from typing import Any

import click

from trueonline.cli import options
from trueonline.cli.errors import plain_errors, say
from trueonline.cli.stream_options import stream_options
from trueonline.cli.stream_setup import understood


@click.command("predict", short_help="Learn to predict signals of a stream while reading it.")
@stream_options
@click.option("--pace", type=float, help="Speed of replaying a file, relative to its recording; 1 is real time.")
@click.option("--explain", is_flag=True, help="Print the experts with the most weight at the end.")
@click.option(
    "--engine",
    default="local",
    show_default=True,
    help="Where a fleet of recordings runs: local (here), dask (a cluster on this machine) or dask:ADDRESS (an existing one). "
    "Each of --shard N parts has files of its own, in a folder that all workers share.",
)
@options.as_json
def command(pace: float | None, explain: bool, engine: str, as_json: bool, limit: int | None, **given: Any) -> None:
    """Learn to predict signals of a stream while reading it, and score the predictions.

    SOURCE is a file (CSV, JSON lines, Parquet), several files, a pattern in quotes such as "logs/*.csv", - for standard
    input, mqtt://host:port/topic (with TLS mqtts://), lsl://name, or arm, a simulated arm. For each TARGET and --horizon, the
    command predicts the mean of the coming values, in the signal's unit. The nearest values count most. A band around the
    prediction should contain 90 % of the true means. The score compares the predictions with two forecasts that need no learning.

    \b
    Examples:
      trueonline predict log.csv --time timestamp --target value --horizon 1h \\
          --out predictions.csv --alert 0.99 --explain
      trueonline predict log.csv --rate 5min --signals all --target load
      trueonline predict pumps.csv --time time --by pump --target flow \\
          --out predictions.csv
      trueonline predict arm --target force --horizon 0.5s,2s --samples 20000
      trueonline predict mqtt://localhost/arm --rate 100 --time time \\
          --signals "grip,velocity(grip),envelope(emg, 0.2)" --target grip \\
          --out predictions.parquet

    Signals may be derived: velocity(x), lowpass(x, 0.5), envelope(x, 0.2), lag(x, 5min), hour(time), weekday(time). Write
    names as in the source, and in double quotes if they have commas. Times in OUT look like those in the source.

    With --out a checkpoint is written now and then (--checkpoint-every). After Ctrl-C or kill -9, run the same command again: it
    resumes from the last checkpoint, and says what was lost. When a file was read to its end, the checkpoint is removed,
    unless --checkpoint names it. With the same --checkpoint, another source continues from what was learned before.
    """
    again = "Run the same command again to resume."
    with (
        plain_errors("Stopped." if engine == "local" or given["out"] is None else f"Stopped. {again}"),
        ExitStack() as until_told,  # a second signal ends nothing before that
    ):
        from trueonline.streams.running import predict_command
        from trueonline.terminal import StreamBar

        chosen, setup = understood(given, pace)
        if as_json and chosen.out == "-":
            raise click.UsageError("--json and --out - would both print; drop one of them.")
        if engine == "local":
            warn = predict_command.Warner(say)
            run = predict_command.prepare(chosen, setup, sys.stdout, say)
            stop = until_told.enter_context(predict_command.until_stopped())
            with StreamBar() as bar:
                watchers = () if chosen.quiet else (bar,)
                summary = predict_command.predict(run, stop, [*watchers, warn], limit, forget=chosen.checkpoint is None)
            warn.tell(run.warnings())
            out, stopped = chosen.out, run.source.replayable and not run.ended
        else:
            from trueonline.streams.running.fleet_parts import of_part, predict_parts

            if limit is not None:
                raise click.UsageError("--samples is for --engine local; drop one of them.")
            summary = predict_parts(chosen, setup, engine, say)
            out, stopped = chosen.out and of_part(chosen.out, "*", chosen.shard[1]), False
        if as_json:
            click.echo(json.dumps(summary, indent=2, allow_nan=False))
        elif not chosen.quiet:
            click.echo(predict_command.as_text(summary, out, explain), err=chosen.out == "-")
        if stopped:
            if not chosen.quiet:
                say("Stopped before the end." if run.checkpoint is None else f"Stopped before the end. {again}")
            sys.exit(130)
        if summary["ended"] and not summary["samples"]:
            raise click.ClickException("there was no sample that could be used")
