"""A simulated myoelectric arm: a person opens and closes a gripper with two noisy muscle signals.

It replaces the recordings of section 5.2 of van Seijen et al. (2016), which are not public. In the paper, a person with an
amputation grasps things with a robot arm that follows the signals of two muscles. There are 58,000 samples at 40 Hz. The angle
of the servo motor changes smoothly between about 300 and 500. The grip force is small and changes rapidly. All numbers below
were chosen from that description and from common values of such arms, before anything was learned from the simulation, and
were not changed afterwards.

**The person** repeats a task: *rest*, *open* the hand to a width, *reach*, *close* it on an object (or, seldom, on nothing),
*squeeze*, *carry*, *release*. How long each lasts and how strong each effort is differs every time. Seldom, a movement begins with
a short burst of the wrong muscle. The person sees the hand with a delay of 0.2 s.

**Muscles.** The activation a follows the intended effort with a time constant of 0.08 s; a tenth of each muscle's activation
shows in the other. The signal imitates a rectifier: (0.02 + gain·a) times the mean of the absolute values of six normal
numbers, scaled to a mean of 1. So the noise grows with the effort: about a third of it. The gain falls by up to a fifth with
fatigue (time constant half an hour), and drifts by 5 % (time constant a minute).

**The motor** takes the difference between the two signals, smoothed with a time constant of 0.15 s. Beyond a threshold of 0.08 it
moves at 200 units a second per unit of difference, at most 120, and gains at most 1,200 units a second per second. It stays
between 300 (closed) and 500 (open), where it stops at once, is read in whole units, and cannot be pushed back by the object. Its
speed is read with a noise of 1.

**The object** is at 340, 380 or 420, give or take 5, and resists with 0.02 to 0.1 units of force for each unit of angle. When the
jaws meet it, a damping of 0.008 per unit of speed adds a knock, and the motor stalls at a force of 3. While it is held it slips,
0.4 times a second on average: the force falls to between 0.4 and 0.9 of itself and comes back with a time constant of 0.15 s. The
sensor's noise is 0.01, and 3 % of the force.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from trueonline.inputs import count
from trueonline.inputs.seeds import seed_of

RATE = 40  # samples a second
SAMPLES = 58_000  # the paper's recording
CLOSED, OPEN = 300.0, 500.0  # the motor's range
MAX_SPEED, MAX_ACCELERATION = 120.0, 1200.0  # units a second, and per second

# The person: bounds of uniform numbers, seconds or shares of the greatest effort.
REST, BREAK, BREAKS = (1.0, 5.0), (8.0, 25.0), 0.1  # one rest in ten is a break
WIDTH = (430.0, 490.0)  # how far the hand is opened
MOVING = (0.35, 0.9)  # effort of opening, closing and releasing
REACH, SQUEEZE, SQUEEZING, CARRY, RELEASE = (0.5, 2.5), (0.3, 1.0), (0.2, 0.5), (1.0, 5.0), (30.0, 80.0)
# Phases that end after a time or at a width, the phase after each, and the bounds of that one.
AFTER = {"rest": ("open", WIDTH), "open": ("reach", REACH), "close": ("squeeze", SQUEEZE), "squeeze": ("carry", CARRY)}
EMPTY = 0.15  # how often there is nothing to grasp
WRONG, BURST, BURSTING = 0.1, (0.2, 0.5), (0.3, 0.5)  # how often the wrong muscle begins, how long, how strongly
TONE = (0.0, 0.05)  # effort of both muscles at other times
DELAY = 8  # samples until the person sees a change of the hand
FELT = 0.2  # the force at which the person notices that something is held

# The muscles.
ACTIVATION, CROSS, FLOOR, FIBRES = 0.08, 0.1, 0.02, 6
FATIGUE, TIRING = 0.2, 1800.0
DRIFT, DRIFTING = 0.05, 60.0

# The motor and the object.
SMOOTHING, THRESHOLD, GAIN, SPEED_NOISE = 0.15, 0.08, 200.0, 1.0
PLACES, SPREAD, STIFFNESS, DAMPING, STALL = (340.0, 380.0, 420.0), 5.0, (0.02, 0.1), 0.008, 3.0
SLIPS, SLIPPED, RECOVERY = 0.4, (0.4, 0.9), 0.15
FORCE_NOISE, FORCE_SHARE = 0.01, 0.03

DT = 1.0 / RATE
NAMES = ("position", "velocity", "force", "flexor", "extensor")


class Sample(NamedTuple):
    """One reading: the motor's angle and speed, the grip force, and the two muscle signals."""

    position: float
    velocity: float
    force: float
    flexor: float  # closes
    extensor: float  # opens


def samples(seed: Any = 0) -> Iterator[Sample]:
    """Readings of the arm, 40 a second, without end. The same seed gives the same readings."""
    choices, noise = (np.random.default_rng(s) for s in np.random.SeedSequence(seed_of("arm", seed)).spawn(2))
    person, muscles, hand = _Person(choices), _Muscles(), _Hand(choices)
    seen = [(hand.angle, 0.0)] * DELAY
    t = 0
    while True:
        rectified = np.abs(noise.standard_normal((4096, 2, FIBRES))).mean(axis=2) / math.sqrt(2.0 / math.pi)
        for fibres, others in zip(rectified.tolist(), noise.standard_normal((4096, 5)).tolist(), strict=True):
            efforts = person.act(*seen[t % DELAY], hand)
            signals = muscles.follow(efforts, fibres, others[:2], t * DT)
            hand.move(signals)
            seen[t % DELAY] = hand.angle, hand.force
            force = max(0.0, hand.force * (1.0 + FORCE_SHARE * others[2]) + FORCE_NOISE * others[3])
            speed = hand.speed + SPEED_NOISE * others[4]
            yield Sample(float(round(hand.angle)), speed, force, *signals)
            t += 1


def simulate(length: int = SAMPLES, seed: Any = 0) -> np.ndarray:
    """The first readings of `samples`: an array with a row for each and the columns of `NAMES`."""
    length = count("length", length)
    return np.array([sample for sample, _ in zip(samples(seed), range(length), strict=False)])


# --- The parts ------------------------------------------------------------------------------------


class _Person:
    """Goes through the phases of the task, and decides how strongly each muscle should contract."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self._begin("rest", rng.uniform(*REST))

    def act(self, angle: float, force: float, hand: _Hand) -> tuple[float, float]:
        """Efforts of flexor and extensor, from the delayed angle and force. At a grasp `hand` gets an object."""
        self.elapsed += DT
        if self.wrong > 0.0:  # the wrong muscle; the right one then begins
            self.wrong -= DT
            flexing = self.phase != "close"
            return (self.bursting, self.tone) if flexing else (self.tone, self.bursting)
        if self._done(angle, force):
            self._next(angle, hand)
        if self.phase in ("open", "release"):
            return self.tone, self.effort
        if self.phase in ("close", "squeeze"):
            return self.effort, self.tone
        return self.tone, self.tone

    def _done(self, angle: float, force: float) -> bool:
        if self.phase in ("open", "release"):
            return angle >= self.goal
        if self.phase == "close":
            return force > FELT or angle <= CLOSED + 5.0
        return self.elapsed >= self.goal

    def _next(self, angle: float, hand: _Hand) -> None:
        uniform = self.rng.uniform
        if self.phase in AFTER:
            phase, bounds = AFTER[self.phase]
            self._begin(phase, uniform(*bounds))
        elif self.phase == "reach":
            hand.meet(self.rng)
            self._begin("close", 0.0)
        elif self.phase == "carry":
            self._begin("release", min(angle + uniform(*RELEASE), OPEN - 5.0))
        else:
            hand.part()
            self._begin("rest", uniform(*(BREAK if self.rng.random() < BREAKS else REST)))

    def _begin(self, phase: str, goal: float) -> None:
        uniform = self.rng.uniform
        self.phase, self.goal, self.elapsed = phase, goal, 0.0
        self.effort = uniform(*(SQUEEZING if phase == "squeeze" else MOVING))
        self.tone, self.bursting = uniform(*TONE), uniform(*BURSTING)
        errs = phase in ("open", "close", "release") and self.rng.random() < WRONG
        self.wrong = uniform(*BURST) if errs else 0.0


class _Muscles:
    """Turns efforts into the two signals."""

    def __init__(self) -> None:
        self.active, self.drift = [0.0, 0.0], [0.0, 0.0]

    def follow(self, efforts: tuple[float, float], fibres: list[float], normal: list[float], now: float) -> list[float]:
        fresh = 1.0 - FATIGUE * (1.0 - math.exp(-now / TIRING))
        kept = 1.0 - DT / DRIFTING
        for i in range(2):
            self.active[i] += DT / ACTIVATION * (efforts[i] - self.active[i])
            self.drift[i] = kept * self.drift[i] + DRIFT * math.sqrt(1.0 - kept * kept) * normal[i]
        mixed = (self.active[0] + CROSS * self.active[1], self.active[1] + CROSS * self.active[0])
        return [(FLOOR + fresh * (1.0 + self.drift[i]) * mixed[i]) * fibres[i] for i in range(2)]


class _Hand:
    """The motor, and the object between the jaws if there is one."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.angle, self.speed, self.force = 400.0, 0.0, 0.0
        self.smooth = [0.0, 0.0]
        self.grip = 1.0  # below 1 after slipping
        self.part()

    def meet(self, rng: np.random.Generator) -> None:
        """An object comes between the jaws, or none."""
        place = rng.choice(PLACES) + rng.uniform(-SPREAD, SPREAD)
        self.stiffness = rng.uniform(*STIFFNESS)
        self.place = -math.inf if rng.random() < EMPTY else float(place)

    def part(self) -> None:
        self.place, self.stiffness = -math.inf, 0.0

    def move(self, signals: list[float]) -> None:
        for i in range(2):
            self.smooth[i] += DT / SMOOTHING * (signals[i] - self.smooth[i])
        drive = self.smooth[1] - self.smooth[0]
        wanted = math.copysign(min(MAX_SPEED, GAIN * max(0.0, abs(drive) - THRESHOLD)), drive)
        most = MAX_ACCELERATION * DT
        speed = self.speed + min(most, max(-most, wanted - self.speed))
        least = max(CLOSED, self.place - STALL / self.stiffness) if self.stiffness else CLOSED
        before = self.angle
        self.angle = min(OPEN, max(min(least, before), before + speed * DT))
        self.speed = (self.angle - before) / DT
        self._press()

    def _press(self) -> None:
        depth = self.place - self.angle
        if depth <= 0.0:
            self.force, self.grip = 0.0, 1.0
            return
        if self.rng.random() < SLIPS * DT:
            self.grip *= self.rng.uniform(*SLIPPED)
        self.grip += DT / RECOVERY * (1.0 - self.grip)
        self.force = self.grip * self.stiffness * depth + DAMPING * max(0.0, -self.speed)
