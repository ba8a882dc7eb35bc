"""From Atari screens to the *Basic* features of Bellemare et al. (2013): which colours are where, without the background.

A screen is 210 rows of 160 colours (even numbers from 0 to 254). It is divided into 16 × 14 tiles of 10 × 15 pixels (taller
ones where a game has more rows, the last of them cut by the screen's end). For each tile and each of 128 colours a binary
feature says whether a pixel of that colour, other than the background's, is in it: feature (row · 16 + column) · 128 +
colour / 2. The last feature, a bias, is always active.

The Atari shows an object in every other frame only when it runs out of hardware; so a screen is the *average* of two frames, as
a television's phosphor makes it. The average of two colours is the colour nearest to a mixture of 77 parts of the brighter
and 23 of the darker one, in each of red, green and blue, rounded down to a multiple of four. It depends on both colours alone,
and is a table.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from trueonline.core.checking import ones
from trueonline.core.compiling.kernels import call, kernel, specialise

WIDTH = 160
ROWS, COLUMNS, COLOURS = 14, 16, 128
WIDE = WIDTH // COLUMNS
N_FEATURES = ROWS * COLUMNS * COLOURS + 1

# Red, green and blue of the 128 colours of an American (NTSC) television, in the order of their numbers 0, 2, …, 254.
NTSC = np.frombuffer(
    bytes.fromhex(
        "0000004a4a4a6f6f6f8e8e8eaaaaaac0c0c0d6d6d6ececec48480069690f86861da2a22abbbb35d2d240e8e84afcfc54"
        "7c2c00904811a26221b47a30c3903dd2a44adfb755ecc860901c00a33915b55328c66c3ad5824ae39759f0aa67fcbc74"
        "940000a71a1ab83232c84848d65c5ce46f6ff08080fc909084006497197aa8308fb846a2c659b3d46cc3e07cd2ec8ce0"
        "50008468199a7d30ad9246c0a459d0b56ce0c57ceed48cfc140090331aa34e32b56848c67f5cd5956fe3a980f0bc90fc"
        "000094181aa72d32b84248c8545cd6656fe47580f08490fc001c88183b9d2d57b04272c2548ad265a0e175b5ef84c8fc"
        "0030641850802d6d984288b054a0c565b7d975cceb84e0fc00403018624e2d8169429e8254b89965d1ae75e7c284fcd4"
        "0044001a661a32843248a0485cba5c6fd26f80e88090fc90143c00355f18527e2d6e9c4287b7549ed065b4e775c8fc84"
        "3038005059166d762b88923ea0ab4fb7c25fccd86ee0ec7c482c00694d14866a26a28638bb9f47d2b656e8cc63fce070"
    ),
    np.uint8,
).reshape(COLOURS, 3)


@cache
def averages() -> np.ndarray:
    """A table: the average of colours 2i and 2j, at [i, j]. A colour's average with itself is the colour.

    >>> bool((averages().diagonal() == np.arange(0, 256, 2)).all())
    True
    """
    bright, dark = (choose(NTSC[:, None].astype(int), NTSC[None]) for choose in (np.maximum, np.minimum))
    mixed = ((bright - dark) * 77 // 100 + dark) // 4 * 4
    table = np.empty((COLOURS, COLOURS), np.uint8)
    for i, row in enumerate(mixed):  # a row at a time: all at once would need 100 MB
        table[i] = 2 * np.abs(row[:, None] - NTSC[None].astype(int)).sum(axis=2).argmin(axis=1)
    return table


# --- Kernels --------------------------------------------------------------------------------------


@kernel
def emit(bits, first, indices, count):
    """Write first + i for each binary digit i of a word that is 1, in rising order; return the new count."""
    while bits:
        lowest = bits & (~bits + np.uint64(1))
        indices[count] = first + ones(lowest - np.uint64(1))
        count += 1
        bits ^= lowest
    return count


def basic(now, before, background, table, indices):
    """Write the indices of the active features of the average of two frames, in rising order; return how many.

    Nearly everywhere both frames show the background. Eight pixels of it are passed over at once.
    """
    count = 0
    now_8, before_8, background_8 = now.view(np.uint64), before.view(np.uint64), background.view(np.uint64)
    low, high = np.zeros(COLUMNS, np.uint64), np.zeros(COLUMNS, np.uint64)  # a tile's colours, as binary digits
    height = now.shape[0]
    tall = (height + ROWS - 1) // ROWS
    for row in range(ROWS):
        low[:] = np.uint64(0)
        high[:] = np.uint64(0)
        for y in range(row * tall, min((row + 1) * tall, height)):
            for eight in range(WIDTH // 8):
                same = background_8[y, eight]
                if (now_8[y, eight] ^ same) | (before_8[y, eight] ^ same):
                    for x in range(8 * eight, 8 * eight + 8):
                        colour = table[now[y, x] >> 1, before[y, x] >> 1] >> 1
                        if colour != background[y, x] >> 1:
                            bit = np.uint64(1) << np.uint64(colour & 63)
                            if colour < 64:
                                low[x // WIDE] |= bit
                            else:
                                high[x // WIDE] |= bit
        for column in range(COLUMNS):
            first = (row * COLUMNS + column) * COLOURS
            count = emit(low[column], first, indices, count)
            count = emit(high[column], first + 64, indices, count)
    indices[count] = N_FEATURES - 1
    return count + 1


def tally(now, before, table, counts):
    """Count the colour of each pixel of the average of two frames."""
    for y in range(now.shape[0]):
        for x in range(WIDTH):
            counts[y, x, table[now[y, x] >> 1, before[y, x] >> 1] >> 1] += 1


BASIC = specialise(basic, "basic")
TALLY = specialise(tally, "tally")


class Screens:
    """Features from pairs of frames, over a background.

    Parameters
    ----------
    background : ndarray of int, shape (rows, 160)
        The colours of the background.
    """

    def __init__(self, background: np.ndarray) -> None:
        self.background = checked(background)
        self._indices = np.empty(N_FEATURES, np.int64)

    def features(self, now: np.ndarray, before: np.ndarray) -> np.ndarray:
        """The indices of the active features of the average of two frames.

        Parameters
        ----------
        now, before : ndarray of uint8, shape (rows, 160)
            The colours of a frame and of the frame before it.

        Returns
        -------
        ndarray of int64
            The indices in rising order.
        """
        count = call(BASIC, now, before, self.background, averages(), self._indices)
        return self._indices[:count].copy()


# --- Backgrounds ----------------------------------------------------------------------------------


def checked(background: Any, height: int | None = None) -> np.ndarray:
    """A background as the kernels take it; ValueError where it is none, or not as high as it should be."""
    array = np.asarray(background)
    if array.ndim != 2 or array.size == 0 or array.shape != (height or len(array), WIDTH):
        raise ValueError(f"a background must have {height or 210} rows of {WIDTH} colours, got shape {array.shape}")
    if array.dtype.kind not in "iu" or array.min() < 0 or array.max() > 255:
        raise ValueError("a background must be colours from 0 to 255")
    return np.ascontiguousarray(array & 254, np.uint8)
