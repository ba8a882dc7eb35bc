"""The options that `trueonline asterix` and `trueonline atari` share, and the call that both make."""

from __future__ import annotations

from typing import Any

import click

from trueonline import catalog
from trueonline.cli import options
from trueonline.cli.errors import plain_errors

AGENTS = [name.removesuffix("_sarsa") for name in catalog.agents(scaled=True)]

atari_options = options.all_of(
    (
        click.option(
            "--protocol",
            default="paper",
            show_default=True,
            type=click.Choice(["paper", "published"]),
            help="paper: as the text says. published: as the program published with it does.",
        ),
        click.option(
            "--method",
            default="true_online",
            show_default=True,
            help=f"{', '.join(AGENTS)} or random. The protocol published has no Q(λ).",
        ),
        options.step_size(0.5, "It is divided by the largest number of active features so far."),
        click.option("--fixed-step-size", is_flag=True, help="Take α as it is, without dividing it."),
        options.trace_decay,
        options.seed("the choices"),
        click.option("--frames", type=click.IntRange(1), help="Number of frames to play.  [default: 4,320,000]"),
        click.option("--episodes", type=click.IntRange(1), help="Number of episodes to play, instead of --frames."),
        click.option(
            "--background",
            type=click.Path(exists=True, dir_okay=False),
            help="A file with the background. By default it is learned from five minutes of random play.",
        ),
        click.option(
            "--checkpoint",
            type=click.Path(dir_okay=False),
            help="Save the state there, every minute and at the end, and resume from there.",
        ),
        options.as_json,
    )
)


def play(game: str, *, checkpoint: str | None, **given: Any) -> None:
    """Play one run and print what came of it."""
    stopped = "Stopped." if checkpoint is None else "Stopped. Run the same command again to resume from the checkpoint."
    with plain_errors(stopped, extra="atari"):
        from trueonline.control.atari import play_command

        click.echo(play_command.play(game, checkpoint=checkpoint, **given))
