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


def test_speeds_forces_noise_and_fatigue_are_as_they_were(arm_signals):
    """Of 12,000 samples with seed 0: means, spreads, and mean steps from sample to sample."""
    now = arm_signals.mean(axis=0), arm_signals.std(axis=0), np.abs(np.diff(arm_signals, axis=0)).mean(axis=0)
    np.testing.assert_allclose(now, THEN, rtol=1e-3)


THEN = [
    [395.468417, 0.183581, 0.623975, 0.158108, 0.151359],
    [61.386639, 44.539396, 1.104310, 0.221068, 0.223292],
    [0.610718, 2.878139, 0.032986, 0.055188, 0.054095],
]


def test_the_seed_determines_the_arm(arm_signals):
    np.testing.assert_array_equal(arm.simulate(5000, seed=0), arm_signals[:5000])
    np.testing.assert_array_equal(list(itertools.islice(arm.samples(0), 5000)), arm_signals[:5000])
    assert not np.array_equal(arm.simulate(5000, seed=1), arm_signals[:5000])
    with pytest.raises(ValueError, match="length must be a whole number"):
        arm.simulate(0)
