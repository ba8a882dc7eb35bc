"""`trueonline asterix`: one run of the paper's game."""

from __future__ import annotations

from typing import Any

import click

from trueonline.cli.atari_options import atari_options, play


@click.command("asterix")
@atari_options
def command(**given: Any) -> None:
    """Play one run of Asterix while learning it (section 5.3).

    The features say which colours are in which of 16 × 14 tiles of the screen, without its background. There are 28,673
    features. An action lasts 5 frames, ε = 0.01, γ = 0.999. α is divided by the largest number of active features so far.
    The score is in the game's points. An episode that has begun is played to its end and counts.

    \b
    Example: the beginning of a run of the program published with the paper:
      trueonline asterix --protocol published --method true_online \\
          --step-size 2 --trace-decay 0.95 --seed 1 --episodes 25 \\
          --background asterix.bg --json
    """
    play("asterix", **given)
