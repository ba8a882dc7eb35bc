"""Returns that come true later, against their definition summed up one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueonline.streams.accuracy.realised_returns import EXACT_WEIGHT, KNOWN_WEIGHT, MOVING_WINDOW, Returns


def by_definition(V, C, gammas, starts, window):
    """Errors, returns and open weights of the samples that are known to within 1 %, and how many are not."""
    errors, returns, left, truncated = [], [], [], 0
    for t in range(len(V)):
        total, weight = 0.0, 1.0
        for k in range(t + 1, min(len(V), t + window + 1)):
            if starts[k]:
                break
            total, weight = total + weight * C[k], weight * gammas[k]
            if weight <= EXACT_WEIGHT:  # a sample waits no longer: what is open cannot be seen
                break
        if weight <= KNOWN_WEIGHT:
            errors.append(abs(V[t] - total))
            returns.append(total)
            left.append(weight)
        else:
            truncated += 1
    return np.array(errors), np.array(returns), np.array(left), truncated


def hold_to_definition(returns, discounts, V, C, columns, starts):
    for q, (discount, score) in enumerate(zip(discounts, returns.scores(), strict=True)):
        window = returns.windows[returns.discounts.index(discount)]
        errors, found, left, truncated = by_definition(V[:, q], C[:, q], columns[discount], starts, window)
        assert (score.scored, score.truncated) == (len(errors), truncated)
        if len(errors) == 0:
            assert score.mean_return is None
            assert score.mean_absolute_return_error is None
            continue
        scale = 1.0 + np.abs(found).max()
        assert score.mean_absolute_return_error == pytest.approx(errors.mean(), abs=1e-12 * scale)
        assert score.root_mean_square_return_error == pytest.approx(np.sqrt((errors**2).mean()), abs=1e-12 * scale)
        assert score.mean_return == pytest.approx(found.mean(), abs=1e-12 * scale)
        assert score.return_deviation == pytest.approx(found.std(), abs=1e-10 * scale)
        assert score.open_weight == pytest.approx(left.mean(), abs=1e-14)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), gaps=st.sampled_from([0.0, 0.01, 0.2]), memory=st.sampled_from([2**26, 20_000, 3_000])
)
def test_scores_are_those_of_the_definition(seed, gaps, memory):
    rng = np.random.default_rng(seed)
    discounts = [float(rng.choice([0.0, 0.3, 0.9, 0.97])) if rng.random() < 0.8 else "ending" for _ in range(4)]
    T = int(rng.integers(1, 400))
    V, C = rng.normal(size=(2, T, len(discounts)))
    C += 5.0
    starts = rng.random(T) < gaps
    starts[0] = True
    ending = np.where(rng.random(T) < 0.05, 0.0, rng.random(T) ** 0.1)
    returns = Returns(discounts, memory=memory)
    columns = {d: ending if isinstance(d, str) else np.full(T, d) for d in returns.discounts}
    gammas = np.column_stack([columns[d] for d in returns.discounts])
    at = 0
    while at < T:  # in pieces of any length, and saved in between
        to = at + int(rng.integers(1, 60))
        returns.follow(V[at:to], C[at:to], starts[at:to], gammas[at:to])
        returns.scores()  # a look at them changes nothing
        other = Returns(discounts, memory=memory)
        other.restore(returns.state())
        returns, at = other, to
    hold_to_definition(returns, discounts, V, C, columns, starts)


def test_recent_scores_leave_out_the_samples_that_wait():
    returns = Returns([0.9, 0.0, 0.9, 1.0])
    ones = np.ones((200, 4))
    returns.follow(ones, ones, np.arange(200) == 0)
    window = returns.windows[0]
    seen = returns.so_far()
    assert seen["scored"].tolist() == [200 - window, 199, 200 - window, 0]
    for name in ("error", "recent_error"):
        assert seen[name] == pytest.approx([9.0, 0.0, 9.0, np.nan], rel=1e-3, nan_ok=True)
    known = next(n for n in range(1, 1000) if 0.9**n <= KNOWN_WEIGHT)
    assert returns.scores()[0].scored == 200 - known
    assert returns.scores()[0].truncated == known


def test_windows_leave_out_what_is_negligible_where_memory_allows():
    returns = Returns([0.97, 0.5, "ending", 0.0, 1.0], memory=2**26)
    for discount, window in zip(returns.discounts, returns.windows, strict=True):
        if discount == "ending":
            assert window == MOVING_WINDOW
        elif discount == 0.0:
            assert window == 1
        elif discount < 1.0:
            assert discount**window <= EXACT_WEIGHT < discount ** (window - 1)


def test_memory_is_bounded_whatever_the_horizons():
    discounts = [1.0 - 10.0**-k for k in range(1, 9)] * 5
    for memory in (10_000, 1_000_000):
        returns = Returns(discounts, memory=memory)
        for _ in range(3):
            returns.follow(np.zeros((5000, 40)), np.zeros((5000, 40)), np.zeros(5000, bool))
        state = returns.state()
        waiting = sum(state[name].nbytes for name in ("kept", "sums", "weights"))
        assert 0 < waiting <= memory


def test_the_state_holds_what_waits_and_no_more():
    returns = Returns(["moving"])
    returns.follow(np.zeros((3000, 1)), np.zeros((3000, 1)), np.arange(3000) == 0, np.full((3000, 1), 0.9))
    waiting = next(n for n in range(1000) if 0.9**n <= EXACT_WEIGHT)
    assert len(returns.state()["kept"]) == waiting


def test_recent_errors_forget_old_ones():
    returns = Returns([0.0], recent=10.0)
    zeros, starts = np.zeros((1000, 1)), np.zeros(1000, bool)
    returns.follow(zeros + 5.0, zeros, starts)
    returns.follow(zeros + 1.0, zeros, starts)
    (score,) = returns.scores()
    assert score.recent_absolute_return_error == pytest.approx(1.0, abs=1e-6)
    assert score.mean_absolute_return_error == pytest.approx(3.0, abs=0.01)


def test_states_whose_numbers_are_impossible_are_refused():
    returns = Returns([0.9, 0.5])
    ones = np.ones((30, 2))
    returns.follow(ones, ones, np.arange(30) == 0)
    state = returns.state()
    room = np.array(returns.windows)
    returns.restore(state)  # nothing is wrong with it
    crafted = {
        "rings": [-1, 2**31 - 1, 2**62, *(state["rings"] + room[:, None] * np.eye(3, dtype=int)[j] for j in range(3))],
        "counts": [-1, 2**63 - 1],
        "weights": [-1.0, np.nan, 1e300],
        "newer_weight": [2.0],
        "totals": [-1.0, np.nan, np.inf],
        "opened": [np.nan],
        "kept": [np.inf],
    }
    for name, others in crafted.items():
        for other in others:
            bad = {**state, name: np.full_like(state[name], other) if np.ndim(other) == 0 else other}
            with pytest.raises(ValueError, match="does not fit"):
                returns.restore(bad)
    assert returns.scores()[0].scored >= 0
