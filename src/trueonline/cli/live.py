"""`trueonline live`: predictions on a web page."""

from __future__ import annotations

import sys
from typing import Any

import click

from trueonline.cli.errors import plain_errors, say
from trueonline.cli.stream_options import stream_options
from trueonline.cli.stream_setup import understood


@click.command("live")
@stream_options
@click.option(
    "--pace", type=float, help="Speed of replaying a file: 1 is real time, the default for ten minutes or less."
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to serve the page on; other machines need --token."
)
@click.option(
    "--port", default=8040, show_default=True, type=click.IntRange(0, 65535), help="Port of the page; 0 takes a free one."
)
@click.option("--token", envvar="TRUEONLINE_TOKEN", help="A secret of 16 characters or more, or $TRUEONLINE_TOKEN.")
def command(pace: Any, host: str, port: int, token: str | None, limit: int | None, **given: Any) -> None:
    """Predict like `predict`, and show the predictions on a web page.

    The page shows each signal, its prediction with its band, and the true mean as it becomes known. A file that was recorded
    over more than ten minutes is replayed faster, in about a minute and a half.

    \b
    Examples:
      trueonline live arm --target force,position --horizon 0.5s,2s \\
          --signals position,velocity,force,flexor,extensor
      trueonline live mqtt://localhost/arm --rate 100 --time time --target grip
      trueonline live mqtts://ann@broker.example/arm --mqtt-password-file secret \\
          --rate 100 --time time --target grip
      trueonline live lsl://EMG --rate 200 --target 0 --host 0.0.0.0 \\
          --token "$(openssl rand -hex 16)"
    """
    with plain_errors("Stopped.", extra="live"):
        from trueonline.streams.live.server import check_packages
        from trueonline.streams.running import predict_command
        from trueonline.streams.sources import SourceAddress

        check_packages()
        address = given["source"] = SourceAddress.of(given["source"])
        if pace is None and not address.is_live and not given["follow"]:
            pace = "fit"
        chosen, setup = understood(given, pace)
        page = predict_command.Page(address.title, host, port, token)
        run = predict_command.prepare(chosen, setup, sys.stdout, say, page.open)
        with predict_command.until_stopped() as stop:
            if not chosen.quiet:
                say(f"Open {page.url} in a browser. Ctrl-C ends it.")
                predict_command.report_pace(run.source.pace, say)
            summary = page.show(run, stop, limit)
            predict_command.Warner(say).tell(run.warnings())
            if not chosen.quiet:
                click.echo(predict_command.as_text(summary, chosen.out), err=chosen.out == "-")
            if run.checkpoint is not None and not run.ended and not chosen.quiet:
                say("Run the same command again to resume.")
