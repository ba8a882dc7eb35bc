"""The simulated arm keeps the limits and the habits that its description names."""

import itertools

import numpy as np
import pytest

from trueonline.problems import arm


@pytest.fixture(scope="module")
def arm_signals():
    return arm.simulate(12_000, seed=0)


def test_the_arm_keeps_its_ranges(arm_signals):
    position, velocity, force, flexor, extensor = arm_signals.T
    assert arm_signals.shape == (12_000, len(arm.NAMES))
    assert np.isfinite(arm_signals).all()
    assert arm.CLOSED <= position.min() < 320
    assert 480 < position.max() <= arm.OPEN
    assert (position == np.round(position)).all()
    assert np.abs(velocity).max() <= arm.MAX_SPEED + 6.0 * arm.SPEED_NOISE
    assert force.min() >= 0.0
    assert 2.0 < force.max() < arm.STALL + arm.DAMPING * arm.MAX_SPEED + 1.0
    assert min(flexor.min(), extensor.min()) > 0.0


def test_the_arm_keeps_its_limits_of_speed(arm_signals):
    """Between samples the angle moves by at most the top speed, and away from stops speed grows no faster than it may."""
    position, velocity, *_ = arm_signals.T
    assert np.abs(np.diff(position)).max() <= arm.MAX_SPEED / arm.RATE + 1.0  # it is read in whole units
    gains = np.diff(np.abs(velocity))
    assert gains.max() <= arm.MAX_ACCELERATION / arm.RATE + 10.0 * arm.SPEED_NOISE
    assert np.corrcoef(np.diff(position) * arm.RATE, velocity[1:])[0, 1] > 0.95


def test_the_person_opens_closes_and_grasps(arm_signals):
    position, velocity, force, flexor, extensor = arm_signals.T
    grasps = np.flatnonzero((force[1:] > 0.3) & (force[:-1] <= 0.3))
    assert 8 <= len(grasps) <= 60  # in five minutes
    assert 0.1 < (force > 0.2).mean() < 0.6
    assert np.abs(np.diff(force)).max() > 0.2 * force.max(), "the force changes rapidly"
    assert np.abs(np.diff(position)).max() < 0.03 * np.ptp(position), "the angle smoothly"
    closing, opening = velocity < -30.0, velocity > 30.0
    assert flexor[closing].mean() > 4.0 * flexor[opening].mean()
    assert extensor[opening].mean() > 4.0 * extensor[closing].mean()


def test_the_noise_of_a_muscle_follows_its_effort(arm_signals):
    _, velocity, _, flexor, _ = arm_signals.T
    assert flexor[velocity < -80.0].std() > 5.0 * flexor[np.abs(velocity) < 4.0].std() / 3.0
    steady = arm._Muscles()
    rng = np.random.default_rng(0)
    spread = {}
    for effort in (0.2, 0.8):
        fibres = np.abs(rng.standard_normal((3000, 2, arm.FIBRES))).mean(axis=2) * np.sqrt(np.pi / 2.0)
        found = [steady.follow((effort, 0.0), row.tolist(), [0.0, 0.0], 0.0)[0] for row in fibres]
        spread[effort] = np.std(found[100:])
        assert np.mean(found[100:]) == pytest.approx(arm.FLOOR + effort, rel=0.03)
    assert spread[0.8] / spread[0.2] == pytest.approx((0.8 + arm.FLOOR) / (0.2 + arm.FLOOR), rel=0.1)


def test_fatigue_weakens_the_signals():
    late, early = arm._Muscles(), arm._Muscles()
    for _ in range(200):
        weak = late.follow((0.5, 0.0), [1.0, 1.0], [0.0, 0.0], 20.0 * arm.TIRING)
        fresh = early.follow((0.5, 0.0), [1.0, 1.0], [0.0, 0.0], 0.0)
    assert weak[0] / fresh[0] == pytest.approx((arm.FLOOR + 0.5 * (1 - arm.FATIGUE)) / (arm.FLOOR + 0.5), rel=1e-6)


def test_the_seed_determines_the_arm(arm_signals):
    np.testing.assert_array_equal(arm.simulate(5000, seed=0), arm_signals[:5000])
    np.testing.assert_array_equal(list(itertools.islice(arm.samples(0), 5000)), arm_signals[:5000])
    assert not np.array_equal(arm.simulate(5000, seed=1), arm_signals[:5000])
    with pytest.raises(ValueError, match="length must be a whole number"):
        arm.simulate(0)


def test_an_object_stops_the_jaws():
    """With a steady pull of the flexor the motor stalls where the object pushes back with the greatest force."""
    hand = arm._Hand(np.random.default_rng(0))
    hand.place, hand.stiffness = 380.0, 0.05
    hand.rng = type("Never", (), {"random": staticmethod(lambda: 1.0)})()  # nothing slips
    for _ in range(400):
        hand.move([0.9, 0.0])
    assert hand.angle == pytest.approx(380.0 - arm.STALL / 0.05)
    assert hand.force == pytest.approx(arm.STALL)
    for _ in range(400):
        hand.move([0.0, 0.9])
    assert (hand.angle, hand.force) == (arm.OPEN, 0.0)
