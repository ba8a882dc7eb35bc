"""From clean samples to predictions: signals, bounds, tiles, a horde and its score, in one object that can be saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueonline import inputs
from trueonline.nexting.horde import Horde
from trueonline.nexting.prediction_setup import Setup
from trueonline.nexting.questions import Question, horizon_of
from trueonline.nexting.realised_returns import Returns, Score
from trueonline.nexting.signals import Bounds, Signals, spelling
from trueonline.nexting.sources import Clean

__all__ = ["Answers", "DivergedError", "Predictor", "Setup"]

DIVERGED = 1e140  # no return is as large: signals lie within ±1e100
RECENT_SECONDS, RECENT_SAMPLES = (
    60.0,
    1000.0,
)  # the recent error fades over so many seconds, or samples if no rate is known


class DivergedError(ValueError):
    """The weights grew beyond all bounds. A smaller step-size or trace decay helps."""


@dataclass(frozen=True, eq=False, slots=True)
class Answers:
    """Samples, and the predictions at each sample from what was learned up to it.

    Attributes
    ----------
    times : array of shape (T,)
        The times of the samples in seconds.
    starts : array of shape (T,)
        Booleans that mark where a new stream begins.
    signals : array of shape (T, signals)
        The signals in the order of `Predictor.observed`.
    predictions : array of shape (T, questions)
        The predictions in the order of `Predictor.names`.
    low, high : array of shape (T, questions), optional
        The band around each prediction. NaN while it is unknown.
    surprise : array of shape (T,), optional
        How unusual each sample is, in [0, 1].
    suspect : array of int of shape (T,), optional
        The number of the question whose newest error is the most unusual.
    expected : array of shape (T,), optional
        The value of its target that was expected at this sample.
    usual : array of shape (T,), optional
        The usual size of that error.
    """

    times: np.ndarray
    starts: np.ndarray
    signals: np.ndarray
    predictions: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    surprise: np.ndarray | None = None
    suspect: np.ndarray | None = None
    expected: np.ndarray | None = None
    usual: np.ndarray | None = None


class Predictor:
    """Learns to predict the signals of a stream, sample by sample.

    Parameters
    ----------
    setup : Setup
        The signals, targets, time scales and parameters.

    Attributes
    ----------
    columns : tuple of str
        The columns that the source must deliver.
    observed : tuple of str
        The signals in `Answers.signals`.
    questions : tuple of Question
        One question for each target and time scale.
    names : tuple of str
        The names of the questions, such as "force@2s".
    targets : tuple of str
        The target of each question.
    horizons : tuple of float or None
        The time scale of each question in seconds, None if it has none.
    samples : int
        The number of samples learned from.

    Raises
    ------
    ValueError
        If a signal is not understood, or two questions are the same.

    Examples
    --------
    >>> setup = Setup(signals=["a"], targets=["a"], discounts=[0.5], rate=10.0)
    >>> predictor = Predictor(setup)
    >>> for t in range(200):
    ...     answers = predictor.learn(Clean(np.array([t / 10]), np.array([[3.0]]), np.array([t == 0])))
    >>> predictor.names, answers.predictions.round(3)  # 3 + 0.5·3 + 0.25·3 + …
    (('a@0.5',), array([[6.]]))
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        scales = setup.scales()
        asked = [(target, label, gamma) for target in setup.targets for label, gamma in scales.items()]
        moving = [gamma for gamma in scales.values() if isinstance(gamma, str)]
        self.coder = setup.coder()
        inputs, moving = ([spelling(name) for name in names] for names in (setup.signals, moving))
        self.targets = tuple(spelling(target) for target, _, _ in asked)
        self._signals = Signals(list(dict.fromkeys([*inputs, *self.targets, *moving])), setup.rate)
        self.columns = self._signals.columns
        self.observed = self._signals.names
        self._inputs = np.array([self.observed.index(name) for name in inputs])
        self._target = np.array([self.observed.index(target) for target in self.targets])
        self._gammas = {name: self.observed.index(name) for name in moving}
        self.bounds = Bounds(inputs, {spelling(name): (low, high) for name, (low, high) in setup.bounds.items()})
        alpha = setup.step_size / self.coder.n_active
        self.questions = tuple(
            Question(f"{target}@{label}", gamma, setup.trace_decay, alpha, setup.method)
            for target, (_, label, gamma) in zip(self.targets, asked, strict=True)
        )
        self.names = tuple(question.name for question in self.questions)
        seconds = {discount: horizon for horizon, discount in zip(setup.horizons, scales.values(), strict=False)}
        self.horizons = tuple(
            seconds.get(question.discount, _seconds(question.discount, setup.rate)) for question in self.questions
        )
        self.horde = Horde(self.coder.n_features, self.questions)
        self.begin_another()
        self.samples = 0
        self._bad_gammas = 0  # values of γ outside [0, 1]
        self._last: np.ndarray | None = None  # features of the last sample

    def learn(self, clean: Clean) -> Answers:
        """Learn from samples.

        Parameters
        ----------
        clean : Clean
            Samples from a `Cleaner`, with the columns of `columns`.

        Returns
        -------
        Answers
            The predictions at each sample.

        Raises
        ------
        DivergedError
            If a prediction is beyond all bounds. The predictor is of no use then.
        """
        if not len(clean):
            return Answers(clean.times, clean.starts, np.empty((0, len(self.observed))), np.empty((0, len(self.names))))
        observed = self._signals.derive(clean.times, clean.values, clean.starts, clean.offset)
        X = self.coder.many(self.bounds.scale(observed.take(self._inputs, axis=1)))
        C = observed.take(self._target, axis=1)
        moving = {name: self._gamma(observed[:, place]) for name, place in self._gammas.items()}
        predictions = self._answers(X, C, moving, clean.starts)
        if not (np.abs(predictions) < DIVERGED).all():
            raise DivergedError(
                f"the weights diverged at about sample {self.samples + len(C):,}: give a smaller step-size than "
                f"{self.setup.step_size:g}, or a smaller trace decay than {self.setup.trace_decay:g}"
            )
        gammas = None
        if moving:
            gammas = np.column_stack(
                [moving[d] if isinstance(d, str) else np.full(len(C), d) for d in self.returns.discounts]
            )
        self.returns.follow(predictions, C, clean.starts, gammas)
        self.samples += len(C)
        return Answers(clean.times, clean.starts, observed, predictions)

    def _answers(self, X: Any, C: np.ndarray, moving: dict[str, np.ndarray], starts: np.ndarray) -> np.ndarray:
        """V_t(S_t) at each sample. The transition into the first sample begins at the last sample of the previous block."""
        first = 0
        if self._last is not None:
            X = (
                np.vstack([self._last, X])
                if isinstance(X, np.ndarray) and len(self._last) == X.shape[1]
                else [self._last, *X]
            )
            starts, first = np.concatenate([[False], starts]), 1
        else:
            C, moving = C[1:], {name: values[1:] for name, values in moving.items()}
        answers = self.horde.run(X, C, moving, starts=starts, last=True)
        self._last = X[-1]
        return answers[first:]

    def _gamma(self, values: np.ndarray) -> np.ndarray:
        inside = np.clip(values, 0.0, 1.0)
        self._bad_gammas += int((inside != values).sum())
        return inside

    def scores(self) -> list[Score]:
        """Score the predictions against realised returns, as if the stream ended here.

        Returns
        -------
        list of Score
            The score of each question.
        """
        return self.returns.scores()

    def begin_another(self) -> None:
        """Score from now on, because another source begins. What was learned stays."""
        recent = RECENT_SECONDS * self.setup.rate if self.setup.rate else RECENT_SAMPLES
        self.returns = Returns([question.discount for question in self.questions], recent=max(recent, 1.0))

    def counters(self) -> dict[str, int]:
        """Count what happened to signals.

        Returns
        -------
        dict from str to int
            Values that were clipped, bounds that were widened, and collisions of hashed tiles.
        """
        return {
            "clipped": int(self.bounds.clipped.sum()) + self._bad_gammas,
            "widened": int(self.bounds.widened.sum()),
            "collisions": self.coder.collisions,
        }

    # --- Saving -----------------------------------------------------------------------------------

    def state(self) -> dict[str, np.ndarray]:
        """Copy everything that `restore` needs to resume bit for bit.

        Returns
        -------
        dict from str to array
            The arrays by name.
        """
        parts = {
            "horde": self.horde.state(),
            "signals": self._signals.state(),
            "bounds": self.bounds.state(),
            "returns": self.returns.state(),
            "coder": {"places": self.coder.__getstate__()["places"]},
            "own": {"counts": np.array([self.samples, self._bad_gammas], np.int64)},
        }
        if self._last is not None:
            parts["own"]["last"] = self._last
        return {f"{part}/{name}": array for part, arrays in parts.items() for name, array in arrays.items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Resume from a state.

        Parameters
        ----------
        state : mapping from str to array
            The state of a predictor with the same setup.

        Raises
        ------
        ValueError
            If the state is damaged. The predictor is of no use then.
        """
        parts: dict[str, dict[str, np.ndarray]] = {}
        for name, array in state.items():
            part, _, inner = name.partition("/")
            parts.setdefault(part, {})[inner] = array
        try:
            self.horde.restore(parts["horde"])
            self._signals.restore(parts.get("signals", {}))
            self.bounds.restore(parts["bounds"])
            self.returns.restore(parts["returns"])
            self.coder.__setstate__({"settings": self.coder.settings(), "places": parts["coder"]["places"]})
            counts = inputs.saved_array(parts["own"], "counts", (2,), np.int64).tolist()
            self.samples, self._bad_gammas = (inputs.saved_count("counts", number) for number in counts)
            self._last = self._checked_last(parts["own"], parts["horde"]["at"])
        except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
            raise ValueError(f"the saved state does not fit: {error}") from None
        if not all(np.isfinite(array).all() for array in parts["horde"].values() if array.dtype.kind == "f"):
            raise ValueError("the saved state holds numbers that are not finite")

    def _checked_last(self, own: dict[str, np.ndarray], stands: np.ndarray) -> np.ndarray | None:
        """The features of the last sample. ValueError unless they are those at which the horde stands."""
        if not self.samples:
            inputs.check_saved({"last": "last" not in own})
            return None
        last = inputs.saved_array(own, "last", stands.shape, np.int64)
        inputs.check_saved({"last": last == stands})
        return last


def _seconds(discount: float | str, rate: float | None) -> float | None:
    """The time scale of a discount, None if it has none."""
    return None if rate is None or isinstance(discount, str) or discount == 1.0 else horizon_of(discount, rate)
