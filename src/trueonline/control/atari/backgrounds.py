"""The background of a game's screen: learned from random play, read and written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from trueonline.control.atari.emulator import Emulator
from trueonline.control.atari.screens import COLOURS, TALLY, WIDTH, averages, checked
from trueonline.core.compiling.kernels import call
from trueonline.inputs import count
from trueonline.inputs.seeds import seed_of


def read_background(path: str | Path) -> np.ndarray:
    """Read a background from a text file: a line `160,210`, then 210 lines of 160 colours.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    ndarray of uint8, shape (rows, 160)

    Raises
    ------
    ValueError
        If the file holds something else.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
        size = [int(part) for part in lines[0].split(",")]
        rows = [[int(part) for part in line.strip().rstrip(",").split(",")] for line in lines[1:] if line.strip()]
    except (ValueError, UnicodeDecodeError):
        raise ValueError(f"{path} is not a background: it must hold a line 160,210 and then whole numbers") from None
    if size != [WIDTH, len(rows)] or any(len(row) != WIDTH for row in rows):
        shape = f"{len(rows)} rows of {sorted({len(row) for row in rows})} colours, announced as {lines[0].strip()!r}"
        raise ValueError(f"{path} must be a background, rows of {WIDTH} colours, got {shape}")
    return checked(rows)


def write_background(background: np.ndarray, file: IO[bytes]) -> None:
    """Write a background in the format that `read_background` reads.

    Parameters
    ----------
    background : ndarray of int, shape (rows, 160)
        The colours.
    file : binary file
        An open file.
    """
    rows = [[WIDTH, len(background)], *background.tolist()]
    file.write("".join(",".join(map(str, row)) + "\n" for row in rows).encode())


def learn_background(
    game: str = "asterix", *, decisions: int = 3600, seed: int = 0, beat: Callable[[int], Any] = lambda decisions: None
) -> np.ndarray:
    """Learn the most frequent colour of each pixel from random play (Bellemare et al. 2013).

    Parameters
    ----------
    game : str
        The name of the game.
    decisions : int
        How many actions to play. The default is five minutes.
    seed : int
        The seed of the actions.
    beat : callable
        It gets the number of decisions so far.

    Returns
    -------
    ndarray of uint8, shape (rows, 160)
        The colours of the background.
    """
    emulator = Emulator(game)
    rng = np.random.default_rng(seed_of("background of a game", seed))
    counts = np.zeros((emulator.height, WIDTH, COLOURS), np.int64)
    for decision in range(count("decisions", decisions)):
        emulator.act(int(rng.integers(len(emulator.actions))))
        call(TALLY, emulator.now, emulator.before, averages(), counts)
        if emulator.over:
            emulator.reset()
        beat(decision + 1)
    return (2 * counts.argmax(axis=2)).astype(np.uint8)
