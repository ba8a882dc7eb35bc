"""A horde: thousands of predictions learned at once over one stream of features."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from trueonline import files, inputs
from trueonline.core.kernels import call
from trueonline.inputs import FLOATS, INTEGERS
from trueonline.nexting import answers
from trueonline.nexting.answers import CHECK, DONE, FINITE, FULL, LENGTH, METHODS, PREDICT, RUN, STEP
from trueonline.nexting.questions import Question

KIND = "Horde"
Triple = tuple[np.ndarray, np.ndarray, np.ndarray]


class Horde:
    """Learns the answers to many questions over shared features, exactly as separate learners would.

    `questions` may be added to later: a new one is a question whose signal was zero until then, and the others are not
    disturbed. Answers and cumulants are in the order of the questions.

    >>> questions = [Question("force", discount=0.9), Question("angle", discount=0.9), Question("soon", discount=0.5)]
    >>> horde = Horde(n_features=4, questions=questions)
    >>> horde.start([0, 2])
    >>> _ = horde.update([1.0, 300.0, 1.0], [1, 2])
    >>> horde.predict([0, 2])
    array([ 0.2, 60. ,  0.2])
    """

    def __init__(self, n_features: int, questions: Iterable[Question] = ()) -> None:
        self.n_features = inputs.count("n_features", n_features)
        self.steps = 0
        self._questions: list[Question] = []
        self._keys: list[tuple] = []  # what the questions of each group share
        self._stands = False
        self._memory = answers.allocate(self.n_features)
        self.add(questions)

    @property
    def questions(self) -> tuple[Question, ...]:
        return tuple(self._questions)

    @property
    def groups(self) -> int:
        """How many traces there are: one for all questions with the same method, step-size, discount and trace decay."""
        return len(self._keys)

    def add(self, questions: Iterable[Question]) -> None:
        """Ask more. What is learned goes on undisturbed."""
        more = list(questions)
        if not all(isinstance(question, Question) for question in more):
            raise ValueError("questions must be of the class Question")
        asked, names = [*self._questions, *more], set()
        for question in asked:
            if question.name in names:
                raise ValueError(f"two questions have the name {question.name!r}")
            names.add(question.name)
        number = {key: group for group, key in enumerate(self._keys)}
        members = np.array([number.setdefault(question.shares, len(number)) for question in asked], np.int64)
        groups = [(METHODS[method], alpha, lam) for method, alpha, _, lam in number]
        self._memory = answers.widen(self._memory, members, groups)
        self._questions, self._keys = asked, list(number)
        self._binary = any(method == "replace" for method, *_ in number)
        self._named = [(group, key[2]) for group, key in enumerate(number) if isinstance(key[2], str)]
        self._constant = np.array([0.0 if isinstance(key[2], str) else key[2] for key in number], float)
        self._prepare()

    def _prepare(self) -> None:
        """Make single steps ready: whenever an array has been replaced by another."""
        self._step: Callable = partial(STEP, tuple(self._memory), self._binary)

    def _hold(self, size: int) -> None:
        """Have room for that many active features."""
        if size > len(self._memory.at):
            self._memory = answers.hold(self._memory, 2 * size)
            self._prepare()

    # --- Learning ---------------------------------------------------------------------------------

    def start(self, x: Any) -> None:
        """Stand at features x, the first of a stream, with no trace."""
        indices, values = inputs.as_pair(self._checked(x, "x"))
        X = np.array([0, len(indices)], np.int64), indices, values
        self._run(X, np.empty((0, len(self._questions))), np.empty((0, self.groups)), np.ones(1, np.bool_), last=False)

    def update(self, cumulants: Any, x_next: Any, discounts: Mapping[str, float] | None = None) -> np.ndarray:
        """Learn from one sample; return the TD errors. `discounts` gives γ for the questions whose discount is a name."""
        if not self._stands:
            raise RuntimeError("no stream has begun: call start(x) with its first features before update")
        gammas = self._constant if not self._named else self._discounts_now(discounts or {})
        deltas = np.empty(len(self._questions))
        outcome = None
        if _ready(cumulants, FLOATS) and _sparse(x_next):
            with suppress(TypeError):  # the first of its kind
                outcome = self._step(gammas, cumulants, x_next, deltas)
        if outcome != DONE:  # nothing has changed; there may be something wrong, and the long way finds out
            C = self._cumulants(cumulants, (len(self._questions),))
            x = self._checked(x_next, "x_next")
            if not _sparse(x):
                x = inputs.as_pair(x)
            self._hold(inputs.length(x))
            while call(STEP, tuple(self._memory), self._binary, gammas, C, x, deltas) == FULL:
                self._grow()
        self.steps += 1
        return deltas

    def run(
        self,
        X: Any,
        cumulants: Any,
        discounts: Mapping[str, Any] | None = None,
        *,
        starts: Any = None,
        last: bool = False,
    ) -> np.ndarray:
        """Learn from a stream of T transitions; return the answers V_t(S_t), T × questions, each from before its update.

        X has T + 1 rows, `cumulants` T rows of one number for each question. `discounts` maps the name of a discount to T
        numbers. `starts[t]` says that row t begins anew. A stream may come in pieces that share a row, as with learners.
        With `last` there is one more row of answers: at the last row of X, after all updates.
        """
        given, rows = _listed(X) or inputs.stream(X, self.n_features)
        C = self._cumulants(cumulants, (rows - 1, len(self._questions)))
        gammas = self._discounts(discounts or {}, rows - 1)
        begins = inputs.marks("starts", starts, rows)
        sparse = _compressed(given)
        bad = call(CHECK, self.n_features, sparse, self._binary)
        if bad >= 0:
            self._checked(inputs.row(given, bad), f"X[{bad}]")
        if not begins[0] and not (self._stands and inputs.same(self._standing(), inputs.row(sparse, 0))):
            begins = begins.copy()
            begins[0] = True
        return self._run(sparse, C, gammas, begins, last)

    def _run(self, X: Triple, C: np.ndarray, gammas: np.ndarray, begins: np.ndarray, last: bool) -> np.ndarray:
        self._hold(int(np.diff(X[0]).max()))
        values = np.empty((len(C) + bool(last), len(self._questions)))
        t = int(not begins[0])
        while (t := call(RUN, tuple(self._memory), X, C, gammas, begins, values, t)) < len(begins):
            self._grow()
        self._stands = True
        self.steps += int((~begins[1:]).sum())
        return values

    def _grow(self) -> None:
        self._memory = answers.grow(self._memory)
        self._prepare()

    def predict(self, x: Any) -> np.ndarray:
        """The answers at features x."""
        found = np.empty(len(self._questions))
        if _sparse(x):
            with suppress(TypeError):
                if PREDICT(tuple(self._memory), self._binary, x, found) == DONE:
                    return found
        features = self._checked(x, "x")
        call(
            PREDICT, tuple(self._memory), self._binary, features if _sparse(features) else inputs.as_pair(features), found
        )
        return found

    def _standing(self) -> tuple[np.ndarray, np.ndarray]:
        """The features it stands at."""
        length = self._memory.counts[LENGTH]
        return self._memory.at[:length], self._memory.at_x[:length]

    def _checked(self, x: Any, name: str) -> inputs.Features:
        return inputs.features(x, self.n_features, binary=self._binary, name=name)

    def _cumulants(self, given: Any, shape: tuple[int, ...]) -> np.ndarray:
        try:
            array = np.asarray(given)
        except ValueError:  # its rows differ in length
            array = np.asarray(None)
        if shape[0] == 0 == array.size:
            return np.empty(shape)
        if array.dtype.kind in "fiu" and array.shape == shape:
            C = np.require(array, np.float64, ("C", "A", "W"))
            if call(FINITE, C.reshape(-1)):
                return C
        rows = f"{shape[0]} rows of " if len(shape) > 1 else ""
        got = f"{array.dtype} of shape {array.shape}" if len(shape) > 1 else _shown(given)
        raise ValueError(f"cumulants must be {rows}{shape[-1]} finite numbers, one for each question, got {got}")

    def _discounts(self, given: Mapping[str, Any], steps: int) -> np.ndarray:
        """γ for each step and group."""
        result = np.empty((steps, len(self._keys)))
        result[:] = self._constant
        for group, name in self._named:
            values = np.asarray(_given(given, name), float)
            if values.shape != (steps,) or not ((values >= 0.0) & (values <= 1.0)).all():
                raise ValueError(f"the discount {name!r} must be {steps} numbers in [0, 1]")
            result[:, group] = values
        return result

    def _discounts_now(self, given: Mapping[str, Any]) -> np.ndarray:
        """γ for each group at a single step."""
        result = self._constant.copy()
        for group, name in self._named:
            result[group] = inputs.unit(f"the discount {name!r}", _given(given, name))
        return result

    # --- Looking, saving --------------------------------------------------------------------------

    def weights(self, name: str) -> np.ndarray:
        """A dense copy of the weights of one question."""
        return answers.weights(self._memory, self._number(name))

    def trace(self, name: str) -> np.ndarray:
        """A dense copy of the trace that a question has, with others."""
        return answers.trace(self._memory, self._number(name))

    def _number(self, name: str) -> int:
        names = [question.name for question in self._questions]
        if name not in names:
            raise ValueError(f"there is no question {name!r}; there are {', '.join(names[:10])}")
        return names.index(name)

    def state(self) -> dict[str, np.ndarray]:
        """What `restore` needs to go on bit for bit."""
        parts = {name: array.copy() for name, array in answers.dump(self._memory).items()}
        return {**parts, "horde": np.array([self.steps, self._stands, len(self._memory.u)])}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from the state of a horde with the same features and questions. ValueError where it does not fit."""
        arrays = {name: array.copy() for name, array in state.items()}
        try:
            steps, stands, room = (int(number) for number in arrays.pop("horde"))
            memory = answers.restore(self._memory, room, arrays)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise ValueError(f"the state does not fit this horde: {error}") from None
        self._memory, self.steps, self._stands = memory, steps, bool(stands)
        self._prepare()

    def save(self, path: str | os.PathLike) -> None:
        """Write everything to one file, from which `Horde.load` goes on bit for bit. It appears whole or not at all."""
        settings = {"n_features": self.n_features, "questions": [asdict(question) for question in self._questions]}
        files.write_learner(path, KIND, settings, self.state())

    @classmethod
    def load(cls, path: str | os.PathLike) -> Horde:
        """The horde that `save` wrote."""
        kind, settings, arrays = files.read_learner(path)
        if kind != KIND:
            raise ValueError(f"{path} holds a {kind}, not a horde")
        try:
            horde = cls(settings["n_features"], [Question(**question) for question in settings["questions"]])
            horde.restore(arrays)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise ValueError(f"{path} is damaged: {error}") from None
        return horde


def _given(discounts: Mapping[str, Any], name: str) -> Any:
    if name not in discounts:
        raise ValueError(f"discounts must give {name!r}, which some questions are discounted by")
    return discounts[name]


def _ready(x: Any, dtype: np.dtype) -> bool:
    """Whether x is an array that a kernel may be handed to look at: it is slow to refuse others."""
    return type(x) is np.ndarray and x.dtype is dtype and x.ndim == 1 and x.flags.carray


def _sparse(x: Any) -> bool:
    """Whether x is indices, or a pair of indices and values, that a kernel may be handed to look at."""
    if type(x) is tuple:
        return len(x) == 2 and _ready(x[0], INTEGERS) and _ready(x[1], FLOATS)
    return _ready(x, INTEGERS)


def _listed(X: Any) -> tuple[Triple, int] | None:
    """Rows of indices that differ in length, as a tile coder gives them; None for any other stream."""
    if type(X) is list and X and all(type(x) is np.ndarray and x.dtype is INTEGERS and x.ndim == 1 for x in X):
        indices = np.concatenate(X)
        return (_ends([len(x) for x in X]), indices, np.ones(len(indices))), len(X)
    return None


def _compressed(X: inputs.Stream) -> Triple:
    """Any stream in one form: where rows end, indices and values."""
    if isinstance(X, tuple):
        return X
    if X.dtype == FLOATS:
        rows, indices = np.nonzero(X)
        return _ends(np.bincount(rows, minlength=len(X))), np.ascontiguousarray(indices), X[rows, indices]
    return np.arange(len(X) + 1, dtype=np.int64) * X.shape[1], X.reshape(-1), np.ones(X.size)


def _ends(lengths: Any) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
