"""A horde: thousands of predictions learned at once over one stream of features.

The file is one class, and most of it documents its arguments.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from trueonline import files, inputs
from trueonline.core.compiling.kernels import call
from trueonline.core.thread_guard import ThreadGuarded, guarded
from trueonline.inputs import FLOATS, Features, FeaturesLike, FeatureStream
from trueonline.streams.horde import buffers, dense_copies, saved_state
from trueonline.streams.horde.entry_points import CHECK, PREDICT, RUN, STEP
from trueonline.streams.horde.horde_inputs import (
    Triple,
    checked_cumulants,
    checked_mapping,
    compressed,
    discounts_along,
    discounts_now,
    is_ready,
    is_sparse,
    list_of_indices,
)
from trueonline.streams.horde.horde_layout import DONE, FULL, LENGTH, TRACE_CODES
from trueonline.streams.questions.questions import Question

KIND = "Horde"
CHANGED = "changed during the call: give a copy of an array that another thread writes to"


class Horde(ThreadGuarded):
    """Learns the answers to many questions over shared features, exactly as separate learners would.

    Questions with the same method, step-size, discount and trace decay share one trace. So a further question costs little
    more than its weights. Answers and cumulants are in the order of `questions`. Threads may share a horde: a call waits for the
    calls of other threads.

    Parameters
    ----------
    n_features : int
        The number of features.
    questions : iterable of Question
        The questions to begin with. `add` adds more later.

    Attributes
    ----------
    n_features : int
        The number of features.
    steps : int
        The number of transitions learned from.

    Raises
    ------
    ValueError
        If two questions have the same name, or a number is out of range.

    Examples
    --------
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
        self._started = False
        with inputs.room_for(f"n_features={self.n_features:,}", 4.0 * self.n_features):
            self._memory = buffers.allocate(self.n_features)
        self.add(questions)

    @property
    def questions(self) -> tuple[Question, ...]:
        """All questions, in the order in which they were added."""
        return tuple(self._questions)

    @property
    def groups(self) -> int:
        """The number of traces: one for all questions with the same method, step-size, discount and trace decay."""
        return len(self._keys)

    @property
    def features(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The newest features, at which the next transition begins: copies of their indices and values. None before `start`."""
        length = self._memory.counts[LENGTH]
        return (self._memory.at[:length].copy(), self._memory.at_x[:length].copy()) if self._started else None

    @guarded
    def add(self, questions: Iterable[Question]) -> None:
        """Add questions, before a stream or in the middle of one. The answers to the others do not change.

        A new question whose method, step-size, discount and trace decay another question has starts as one whose signal was
        zero until now: it has the trace that the two share. Any other new question starts as a learner whose stream begins
        at the newest features. Features before these have left no trace that it could learn from, because a trace depends
        on the four settings, and features are not kept.

        Parameters
        ----------
        questions : iterable of Question
            The questions to add. Their names must differ from all others.

        Raises
        ------
        ValueError
            If a name is taken, or an item is not a Question, or replacing traces are added where the newest features are not
            binary. Nothing has changed then.

        Examples
        --------
        >>> horde = Horde(n_features=2, questions=[Question("force", discount=1.0, trace_decay=1.0)])
        >>> horde.start([0])
        >>> _ = horde.update([0.0], [1])
        >>> horde.add([Question("angle", discount=1.0, trace_decay=1.0), Question("later", discount=1.0, trace_decay=0.5)])
        >>> _ = horde.update([1.0, 1.0, 1.0], [1])
        >>> horde.predict([0])  # feature 0 was active before the last two were asked
        array([0.1, 0.1, 0. ])
        """
        more: list[Any] = [None]
        with suppress(TypeError):
            more = list(questions)
        if not all(isinstance(question, Question) for question in more):
            raise ValueError(f"questions must be a list of objects of the class Question, got {questions!r:.80}")
        asked, names = [*self._questions, *more], set()
        for question in asked:
            if question.name in names:
                raise ValueError(f"two questions have the name {question.name!r}; give each a name of its own")
            names.add(question.name)
        binary = any(question.method == "replace" for question in asked)
        if binary and self.features is not None and not (self.features[1] == 1.0).all():
            raise ValueError(
                "replacing traces need binary features, and the newest features are not: begin a stream with binary features "
                "first, or ask with another method"
            )
        number = {key: group for group, key in enumerate(self._keys)}
        members = np.array([number.setdefault(question.shares, len(number)) for question in asked], np.int64)
        groups = [(TRACE_CODES[method], alpha, lam) for method, alpha, _, lam in number]
        self._memory = buffers.add_questions(self._memory, members, groups)
        self._questions, self._keys = asked, list(number)
        self._binary = binary
        self._named = [(group, key[2]) for group, key in enumerate(number) if isinstance(key[2], str)]
        self._constant = np.array([0.0 if isinstance(key[2], str) else key[2] for key in number], float)
        self._prepare()

    def _prepare(self) -> None:
        """Bind the compiled step to the arrays. Needed whenever an array has been replaced by another."""
        self._step: Callable = partial(STEP, tuple(self._memory), self._binary)

    def _hold(self, size: int) -> None:
        """Make room for that many active features."""
        if size > len(self._memory.at):
            self._memory = buffers.hold(self._memory, 2 * size)
            self._prepare()

    def _grow(self) -> None:
        """Make room for more features that were never seen."""
        self._memory = buffers.add_rows(self._memory)
        self._prepare()

    # --- Learning ---------------------------------------------------------------------------------

    @guarded
    def start(self, x: FeaturesLike) -> None:
        """Begin a stream, with no trace.

        Parameters
        ----------
        x : array or (indices, values)
            The first features of the stream: dense numbers, active indices, or a pair of indices and values.
        """
        indices, values = inputs.as_pair(self._checked(x, "x"))
        X = np.array([0, len(indices)], np.int64), indices, values
        self._run(X, np.empty((0, len(self._questions))), np.empty((0, self.groups)), np.ones(1, np.bool_), last=False)

    @guarded
    def update(
        self, cumulants: ArrayLike, x_next: FeaturesLike, discounts: Mapping[str, float] | None = None
    ) -> np.ndarray:
        """Learn from one transition.

        Parameters
        ----------
        cumulants : array of shape (questions,)
            The signal of each question on this transition.
        x_next : array or (indices, values)
            The features that the transition leads to.
        discounts : mapping from str to float, optional
            γ of this transition, for each discount that is a name.

        Returns
        -------
        array of shape (questions,)
            The TD error of each question.

        Raises
        ------
        RuntimeError
            If no stream has begun.
        ValueError
            If an argument does not fit. Nothing has changed then.
        """
        if not self._started:
            raise RuntimeError("no stream has begun: call start(x) with its first features before update")
        named = {} if discounts is None else checked_mapping(discounts)
        gammas = self._constant if not self._named else discounts_now(self._constant, self._named, named)
        deltas = np.empty(len(self._questions))
        outcome = None
        if is_ready(cumulants, FLOATS) and is_sparse(x_next):
            with suppress(TypeError):  # not compiled for these types yet
                outcome = self._step(gammas, cumulants, *inputs.given(cast(Features, x_next)), deltas)
        if outcome != DONE:  # nothing has changed: check everything and try again
            C = checked_cumulants(cumulants, (len(self._questions),))
            x = self._checked(x_next, "x_next")
            if not is_sparse(x):
                x = inputs.as_pair(x)
            self._hold(inputs.length(x))
            while (outcome := call(STEP, tuple(self._memory), self._binary, gammas, C, *inputs.given(x), deltas)) == FULL:
                self._grow()
            if outcome != DONE:
                raise ValueError(f"x_next {CHANGED}")
        self.steps += 1
        return deltas

    @guarded
    def run(
        self,
        X: FeatureStream,
        cumulants: ArrayLike,
        discounts: Mapping[str, ArrayLike] | None = None,
        *,
        starts: ArrayLike | None = None,
        last: bool = False,
        resume: bool = False,
    ) -> np.ndarray:
        """Learn from a stream of T transitions.

        A stream begins at X[0], without a trace. With `resume=True` it continues the last one: X[0] is then the last row of the
        piece before.

        Parameters
        ----------
        X : matrix or sequence of features
            T + 1 rows of features, in any form that `start` takes.
        cumulants : array of shape (T, questions)
            The signals of the transition into each row but the first.
        discounts : mapping from str to array of shape (T,), optional
            γ of each transition, for each discount that is a name.
        starts : array of T + 1 booleans, optional
            Marks the rows that begin a new stream. Nothing is learned from the transition into such a row.
        last : bool
            Whether to return the answers at the last row of X too, after all updates.
        resume : bool
            Whether to continue the last stream. X[0] must be the newest features, unless no stream has begun, or `starts` marks it.

        Returns
        -------
        array of shape (T, questions), or (T + 1, questions) with `last`
            V_t(S_t), the answers at each row before the transition out of it is learned from.

        Raises
        ------
        ValueError
            If an argument does not fit, and if `resume` is true and X[0] are not the newest features. Nothing has changed then.
        """
        features, rows = list_of_indices(X) or inputs.stream(X, self.n_features)
        C = checked_cumulants(cumulants, (rows - 1, len(self._questions)))
        gammas = discounts_along(self._constant, self._named, checked_mapping(discounts), rows - 1)
        begins = inputs.marks("starts", starts, rows).copy()
        sparse = compressed(features)
        bad = call(CHECK, self.n_features, sparse, self._binary)
        if bad >= 0:
            self._checked(inputs.row(features, bad), f"X[{bad}]")
            raise ValueError(f"X[{bad}] {CHANGED}")
        begins[0] = inputs.begins(resume, begins[0], self.features, inputs.row(sparse, 0))
        return self._run(sparse, C, gammas, begins, last)

    def _run(self, X: Triple, C: np.ndarray, gammas: np.ndarray, begins: np.ndarray, last: bool) -> np.ndarray:
        self._hold(int(np.diff(X[0]).max()))
        values = np.empty((len(C) + bool(last), len(self._questions)))
        t = int(not begins[0])
        while (t := call(RUN, tuple(self._memory), X, C, gammas, begins, values, t)) < len(begins):
            self._grow()
        self._started = True
        self.steps += int((~begins[1:]).sum())
        return values

    @guarded
    def predict(self, x: FeaturesLike) -> np.ndarray:
        """Answer all questions at some features.

        Parameters
        ----------
        x : array or (indices, values)
            The features: dense numbers, active indices, or a pair of indices and values.

        Returns
        -------
        array of shape (questions,)
            The answers wᵀx.
        """
        answers = np.empty(len(self._questions))
        if is_sparse(x):
            with suppress(TypeError):
                if PREDICT(tuple(self._memory), self._binary, *inputs.given(cast(Features, x)), answers) == DONE:
                    return answers
        features = self._checked(x, "x")
        pair = features if is_sparse(features) else inputs.as_pair(features)
        self._hold(inputs.length(pair))
        if call(PREDICT, tuple(self._memory), self._binary, *inputs.given(pair), answers) != DONE:
            raise ValueError(f"x {CHANGED}")
        return answers

    def _checked(self, x: Any, name: str) -> inputs.Features:
        return inputs.features(x, self.n_features, binary=self._binary, name=name)

    # --- Looking, saving --------------------------------------------------------------------------

    @guarded
    def weights(self, name: str) -> np.ndarray:
        """Copy the weights of one question.

        Parameters
        ----------
        name : str
            The name of the question.

        Returns
        -------
        array of shape (n_features,)
            The weights.
        """
        return dense_copies.weights(self._memory, self._number(name))

    @guarded
    def trace(self, name: str) -> np.ndarray:
        """Copy the trace that a question shares with its group.

        Parameters
        ----------
        name : str
            The name of the question.

        Returns
        -------
        array of shape (n_features,)
            The trace.
        """
        return dense_copies.trace(self._memory, self._number(name))

    def _number(self, name: str) -> int:
        names = [question.name for question in self._questions]
        if name not in names:
            raise ValueError(f"there is no question {name!r}; there are {', '.join(names[:10])}")
        return names.index(name)

    @guarded
    def state(self) -> dict[str, np.ndarray]:
        """Copy everything that `restore` needs to resume bit for bit.

        Returns
        -------
        dict from str to array
            The arrays by name.
        """
        parts = {name: array.copy() for name, array in saved_state.dump(self._memory).items()}
        return {**parts, "horde": np.array([self.steps, self._started, len(self._memory.u)])}

    @guarded
    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Resume from a state.

        Parameters
        ----------
        state : mapping from str to array
            The state of a horde with the same number of features and the same questions.

        Raises
        ------
        ValueError
            If the state does not fit. Nothing has changed then.
        """
        try:
            steps, started, room = inputs.saved_array(state, "horde", (3,), np.int64).tolist()
            inputs.check_saved({"horde": 0 <= steps <= inputs.MAX_COUNT and started in (0, 1) and room >= 0})
            memory = saved_state.restore(self._memory, room, {name: array.copy() for name, array in state.items()})
            if self._binary:
                inputs.check_saved({"at_x": memory.at_x == 1.0})
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise ValueError(f"the state does not fit this horde: {error}") from None
        self._memory, self.steps, self._started = memory, steps, bool(started)
        self._prepare()

    def save(self, path: str | os.PathLike) -> None:
        """Write everything to one file. The file appears whole or not at all.

        Parameters
        ----------
        path : str or path
            The file. `Horde.load` resumes from it bit for bit.
        """
        settings = {"n_features": self.n_features, "questions": [asdict(question) for question in self._questions]}
        files.write_learner(path, KIND, settings, self.state())

    @classmethod
    def load(cls, path: str | os.PathLike) -> Horde:
        """Read the horde that `save` wrote.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        Horde
            A horde that resumes bit for bit.

        Raises
        ------
        ValueError
            If the file is damaged, or holds something else.
        """
        kind, settings, arrays = files.read_learner(path)
        if kind != KIND:
            raise ValueError(f"{path} holds a {kind}, not a horde")
        try:
            n = inputs.count("n_features", settings["n_features"])
            inputs.saved_array(arrays, "rows", (n,), np.int32)  # before anything is allocated
            horde = cls(n, [Question(**question) for question in settings["questions"]])
            horde.restore(arrays)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise ValueError(f"{path} is damaged: {error}") from None
        return horde
