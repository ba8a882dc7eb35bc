"""`trueonline atari`: one run of any Atari game."""

from __future__ import annotations

from typing import Any

import click

from trueonline.cli import options
from trueonline.cli.atari_options import atari_options, play
from trueonline.cli.errors import plain_errors


@click.command("atari", short_help="Play one run of any Atari game while learning it.")
@click.argument("game", required=False)
@options.listing("games")
@atari_options
def command(game: str | None, listing: bool, **given: Any) -> None:
    """Play one run of any Atari GAME while learning it, as `trueonline asterix` does.

    GAME is a name such as breakout or space_invaders; --list shows them. α is divided by the largest number of active
    features so far.
    """
    if listing:
        with plain_errors(extra="atari"):
            from trueonline.control.atari import games

            click.echo("\n".join(games()))
    elif game is None:
        raise click.UsageError("name a game; --list shows them")
    else:
        play(game.lower(), **given)
