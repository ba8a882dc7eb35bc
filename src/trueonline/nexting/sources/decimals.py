"""Decimal text to the nearest float64, and ISO 8601 text to seconds since the epoch, inside kernels.

What a kernel does not read it calls HARD, and Python reads it: the two never differ, only in speed.
"""

# Kernels are typed by Numba.
# mypy: allow-untyped-defs, allow-incomplete-defs

from __future__ import annotations

import math

import numpy as np

from trueonline.core.kernels import kernel

PLUS, MINUS, POINT, COMMA, COLON, SPACE, ZERO = (ord(c) for c in "+-.,: 0")
LOWER = 0x20  # the bit that makes a letter small
E, T, Z = ord("e"), ord("t"), ord("z")

DIGITS = 19  # as many decimal digits always fit into 64 bits
EXACT = 22  # 10²² is the largest power of ten that is a float64
LEAST, MOST = -342, 308  # beyond these powers of ten a number of 19 digits is 0 or ∞, or at the edge of them

U = np.uint64
LOW = U(0xFFFFFFFF)
ALL = U(0xFFFFFFFFFFFFFFFF)
HALF, ONE = U(32), U(1)


def _fives() -> np.ndarray:
    """5^q for q = LEAST … MOST as 128 bits of which the first is 1, in two words.

    They are cut off. Only those for q = −27 … −1 are rounded up, so that a quotient that is a whole number comes out as one.
    """
    table = np.empty((MOST - LEAST + 1, 2), np.uint64)
    for q in range(LEAST, MOST + 1):
        five = 5 ** abs(q)
        if q >= 0:
            shift = 128 - five.bit_length()
            bits = five << shift if shift >= 0 else five >> -shift
        else:
            bits = (1 << (five.bit_length() + 127)) // five + (q >= -27)
        table[q - LEAST] = bits >> 64, bits & (2**64 - 1)
    return table


FIVES = _fives()
TENS = np.array([10.0**q for q in range(EXACT + 1)])


# --- Numbers --------------------------------------------------------------------------------------


@kernel
def decimal(text, a, b, comma):
    """The number in text[a:b], and whether it could be read. `comma` is one more byte that may stand for the point."""
    negative = a < b and text[a] == MINUS
    i = a + (negative or (a < b and text[a] == PLUS))
    w = U(0)
    digits = power = 0
    seen = point = lost = False
    while i < b:
        c = np.int64(text[i])
        if ZERO <= c < ZERO + 10:
            seen = True
            if digits < DIGITS:
                w = w * U(10) + U(c - ZERO)
                digits += w > U(0)
                power -= point
            else:
                lost |= c != ZERO
                power += not point
        elif c in (POINT, comma) and not point:
            point = True
        else:
            break
        i += 1
    if not seen or lost:
        return 0.0, False
    if i < b and (text[i] | LOWER) == E:
        i += 1
        down = i < b and text[i] == MINUS
        i += down or (i < b and text[i] == PLUS)
        exponent = 0
        seen = False
        while i < b and ZERO <= text[i] < ZERO + 10:
            exponent = min(10 * exponent + np.int64(text[i]) - ZERO, 100_000)
            seen = True
            i += 1
        if not seen:
            return 0.0, False
        power += -exponent if down else exponent
    if i < b:
        return 0.0, False
    value, read = scaled(w, power)
    return -value if negative else value, read


@kernel
def scaled(w, q):
    """The float64 nearest to w·10^q, and whether it could be found."""
    if w == U(0):
        return 0.0, True
    if w <= U(2**53) and -EXACT <= q <= EXACT:  # both are floats, so that one operation rounds once (Clinger 1990)
        return (np.float64(w) * TENS[q] if q >= 0 else np.float64(w) / TENS[-q]), True
    if q < LEAST or q > MOST:
        return 0.0, False
    return nearest(w, q)


@kernel
def nearest(w, q):
    """w·10^q for any 64-bit w: the algorithm of Eisel and Lemire (Lemire 2021, "Number parsing at a gigabyte per second").

    w·5^q is a product of 64 and 128 bits, of which the first 64 nearly always tell how to round. It departs from the
    paper in leaving numbers below 2^−1022, and products whose second word is all ones, to Python.
    """
    zeros = 0
    for step in (32, 16, 8, 4, 2, 1):
        if w >> U(64 - step) == U(0):
            w <<= U(step)
            zeros += step
    high, low = product(w, FIVES[q - LEAST, 0])
    if high & (ALL >> U(55)) == ALL >> U(55):  # the bits after those that count are all ones: a carry would change them
        more, _ = product(w, FIVES[q - LEAST, 1])
        low += more
        high += U(low < more)
    if low == ALL:
        return 0.0, False
    top = np.int64(high >> U(63))
    mantissa = high >> U(top + 9)  # 53 bits and one more to round by
    exponent = ((217706 * q) >> 16) + 63 + top - zeros  # ⌊log₂ 10^q⌋ + …: 217706 / 2^16 ≈ log₂ 10
    if exponent < -1022:
        return 0.0, False
    exactly = low <= ONE and -4 <= q <= 23 and (mantissa << U(top + 9)) == high
    if exactly and mantissa & U(3) == ONE:  # half-way between two floats: to the even one
        mantissa -= ONE
    mantissa = (mantissa + (mantissa & ONE)) >> ONE
    return math.ldexp(np.float64(mantissa), exponent - 52), True  # ∞ where it is too large, as for Python


@kernel
def product(a, b):
    """a·b of 64-bit words, as its high and its low word."""
    a_high, a_low, b_high, b_low = a >> HALF, a & LOW, b >> HALF, b & LOW
    lowest = a_low * b_low
    middle = a_high * b_low + (lowest >> HALF)
    other = a_low * b_high + (middle & LOW)
    return a_high * b_high + (middle >> HALF) + (other >> HALF), (other << HALF) | (lowest & LOW)


# --- Times ----------------------------------------------------------------------------------------


@kernel
def moment(text, a, b):
    """Seconds since the epoch of YYYY-MM-DD[T]hh:mm[:ss[.f]][Z|±hh[:]mm] in text[a:b], and whether it could be read."""
    if b - a < 16 or text[a + 4] != MINUS or text[a + 7] != MINUS or text[a + 13] != COLON:
        return 0.0, False
    if (text[a + 10] | LOWER) != T and text[a + 10] != SPACE:
        return 0.0, False
    year, month, day = whole(text, a, 4), whole(text, a + 5, 2), whole(text, a + 8, 2)
    hour, minute, second = whole(text, a + 11, 2), whole(text, a + 14, 2), 0
    i = a + 16
    fraction, parts = 0, 1
    if i < b and text[i] == COLON:
        second = whole(text, i + 1, 2) if b - i >= 3 else -1
        i += 3
        if i < b and (text[i] == POINT or text[i] == COMMA):
            i += 1
            first = i
            while i < b and ZERO <= text[i] < ZERO + 10:
                if i - first < 9:
                    fraction = 10 * fraction + np.int64(text[i]) - ZERO
                    parts *= 10
                i += 1
            if i == first or i - first > 9:
                return 0.0, False
    offset, read = zone(text, i, b)
    if not read or year < 1 or month < 1 or month > 12 or day < 1 or day > days_of(year, month):
        return 0.0, False
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return 0.0, False
    seconds = 86400 * days_to(year, month, day) + 3600 * hour + 60 * minute + second - offset
    if abs(seconds) < 2**53 // parts - 1:  # then both are floats, and the division rounds once
        return (seconds * parts + fraction) / parts, True
    return seconds + fraction / parts, True


@kernel
def zone(text, a, b):
    """The seconds by which the clock of a time zone is before UTC, and whether text[a:b] is one (or nothing: UTC)."""
    if a == b or (a + 1 == b and (text[a] | LOWER) == Z):
        return 0, True
    colon = b - a == 6 and text[a + 3] == COLON
    if b - a != 5 + colon or (text[a] != PLUS and text[a] != MINUS):
        return 0, False
    hours, minutes = whole(text, a + 1, 2), whole(text, a + 3 + colon, 2)
    seconds = 3600 * hours + 60 * minutes
    return (seconds if text[a] == PLUS else -seconds), 0 <= hours < 24 and 0 <= minutes < 60


@kernel
def whole(text, a, size):
    """The number of `size` digits at a, or −1."""
    result = 0
    for i in range(a, a + size):
        c = np.int64(text[i])
        if not ZERO <= c < ZERO + 10:
            return -1
        result = 10 * result + c - ZERO
    return result


@kernel
def leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


@kernel
def days_of(year, month):
    if month == 2:
        return 28 + leap(year)
    return 30 + ((month + (month > 7)) & 1)


@kernel
def days_to(year, month, day):
    """Days from 1970-01-01. With March as the first month, the leap day comes last and months follow a straight line."""
    years = year - (month <= 2)
    months = month - 3 if month > 2 else month + 9
    leaps = years // 4 - years // 100 + years // 400
    return 365 * years + leaps + (153 * months + 2) // 5 + day - 1 - 719468
