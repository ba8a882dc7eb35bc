"""A horde: thousands of predictions learned at once over one stream of features."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from trueonline import files, inputs
from trueonline.kernels import call
from trueonline.nexting.answers import METHODS, PREDICT, RUN
from trueonline.nexting.questions import Question

KIND = "Horde"
ROOM = 256  # rows to begin with


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
        self._here: tuple[np.ndarray, np.ndarray] | None = None
        self._row = np.full(self.n_features, -1, np.int32)  # feature → row
        self._rows = 0  # that are taken
        self._keys: list[tuple] = []  # what the questions of each group share
        self._column = np.empty(0, np.int64)  # question → column
        self._starts_at = np.zeros(1, np.int64)  # the first column of each group
        self._u = np.zeros((ROOM, 0))
        self._c, self._v_old = np.zeros(0), np.zeros(0)
        self._z, self._on = np.zeros((0, ROOM)), np.zeros((0, ROOM), np.bool_)
        self._listed = np.zeros((0, ROOM), np.int64)
        self._counts, self._scales, self._gammas = np.zeros(0, np.int64), np.ones(0), np.zeros(0)
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
        names = [question.name for question in (*self._questions, *more)]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"two questions have the name {twice!r}")
        known = set(self._keys)
        groups = [*self._keys, *dict.fromkeys(question.shares for question in more if question.shares not in known)]
        asked = [*self._questions, *more]
        member = np.array([groups.index(question.shares) for question in asked], np.int64)
        order = np.argsort(member, kind="stable")
        column = np.empty(len(asked), np.int64)
        column[order] = np.arange(len(asked))
        before = column[: len(self._questions)]
        for name in ("_u", "_c", "_v_old"):
            old = getattr(self, name)
            new = np.zeros((*old.shape[:-1], len(asked)))
            new[..., before] = old[..., self._column]
            setattr(self, name, new)
        fresh = len(groups) - len(self._keys)
        room = self._u.shape[0]
        self._z = np.vstack([self._z, np.zeros((fresh, room))])
        self._on = np.vstack([self._on, np.zeros((fresh, room), np.bool_)])
        self._listed = np.vstack([self._listed, np.zeros((fresh, room), np.int64)])
        self._counts = np.append(self._counts, np.zeros(fresh, np.int64))
        self._scales, self._gammas = np.append(self._scales, np.ones(fresh)), np.append(self._gammas, np.zeros(fresh))
        self._questions, self._keys, self._column = asked, groups, column
        self._starts_at = np.concatenate([[0], np.cumsum(np.bincount(member, minlength=len(groups)))]).astype(np.int64)
        self._methods = np.array([METHODS[key[0]] for key in groups], np.int64)
        self._alphas = np.array([key[1] for key in groups], float)
        self._lams = np.array([key[3] for key in groups], float)

    # --- Learning ---------------------------------------------------------------------------------

    def start(self, x: Any) -> None:
        """Stand at features x, the first of a stream, with no trace."""
        self._here = self._checked(x, "x")
        self._begin()

    def _begin(self) -> None:
        self._scales[:] = self._gammas[:] = 0.0
        self._v_old[:] = 0.0

    def update(self, cumulants: Any, x_next: Any, discounts: Mapping[str, float] | None = None) -> np.ndarray:
        """Learn from one sample; return the TD errors. `discounts` gives γ for the questions whose discount is a name."""
        if self._here is None:
            raise RuntimeError("no stream has begun: call start(x) with its first features before update")
        C = np.asarray(cumulants, float)
        if C.shape != (len(self._questions),) or not np.isfinite(C).all():
            raise ValueError(f"cumulants must be {len(self._questions)} finite numbers, got {_shown(cumulants)}")
        gammas = self._discounts({name: [value] for name, value in (discounts or {}).items()}, 1)
        x = self._checked(x_next, "x_next")
        deltas = self._run([self._here, x], C[None], gammas, np.zeros(2, bool))[1]
        self._here = x
        return deltas

    def run(
        self, X: Any, cumulants: Any, discounts: Mapping[str, Any] | None = None, *, starts: Any = None
    ) -> np.ndarray:
        """Learn from a stream of T transitions; return the answers V_t(S_t), T × questions, each from before its update.

        X has T + 1 rows, `cumulants` T rows of one number for each question. `discounts` maps the name of a discount to T
        numbers. `starts[t]` says that row t begins anew. A stream may come in pieces that share a row, as with learners.
        """
        X, rows = inputs.stream(X, self.n_features)
        C = np.asarray(cumulants, float)
        if C.shape != (rows - 1, len(self._questions)) or not np.isfinite(C).all():
            wanted = f"{rows - 1} rows of {len(self._questions)} finite numbers"
            raise ValueError(f"cumulants must be {wanted}, got shape {C.shape}")
        gammas = self._discounts(discounts or {}, rows - 1)
        begins = inputs.marks("starts", starts, rows)
        features = [self._checked(inputs.row(X, t), f"X[{t}]") for t in range(rows)]
        if begins[0] or self._here is None or not inputs.same(self._here, features[0]):
            self._begin()
        values, _ = self._run(features, C, gammas, begins)
        self._here = features[-1]
        return values

    def predict(self, x: Any) -> np.ndarray:
        """The answers at features x."""
        indices, values = self._checked(x, "x")
        found = np.empty(len(self._questions))
        met = self._row[indices] >= 0  # a feature that was never met has no weights
        rows = self._row[indices[met]].astype(np.int64)
        call(PREDICT, self._u, self._c, self._z, self._starts_at, rows, values[met], found)
        return found[self._column]

    def _run(
        self, features: Sequence[tuple[np.ndarray, np.ndarray]], C: np.ndarray, gammas: np.ndarray, begins: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        indptr = np.cumsum([0, *(len(indices) for indices, _ in features)], dtype=np.int64)
        rows = self._rows_of(np.concatenate([indices for indices, _ in features]))
        x = np.concatenate([values for _, values in features])
        inner = np.empty_like(C)
        inner[:, self._column] = C
        values, deltas = np.empty_like(C), np.empty(C.shape[1])
        call(
            RUN, self._u, self._c, self._v_old, self._z, self._on, self._listed, self._counts, self._scales, self._starts_at,
            self._methods, self._alphas, self._gammas, self._lams, indptr, rows, x, inner, gammas, begins, values, deltas,
        )  # fmt: skip
        self.steps += int((~begins[1:]).sum())
        return values[:, self._column], deltas[self._column]

    def _rows_of(self, indices: np.ndarray) -> np.ndarray:
        """The rows of features, given to those that are new."""
        new = np.unique(indices[self._row[indices] < 0])
        if len(new):
            self._row[new] = np.arange(self._rows, self._rows + len(new))
            self._rows += len(new)
            room = self._u.shape[0]
            if self._rows > room:
                more = max(room, self._rows - room)
                self._u = np.vstack([self._u, np.zeros((more, self._u.shape[1]))])
                self._z = np.hstack([self._z, np.zeros((len(self._z), more))])
                self._on = np.hstack([self._on, np.zeros((len(self._z), more), np.bool_)])
                self._listed = np.hstack([self._listed, np.zeros((len(self._z), more), np.int64)])
        return self._row[indices].astype(np.int64)

    def _checked(self, x: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
        found = inputs.features(x if not isinstance(x, list) else np.asarray(x), self.n_features, name=name)
        indices, values = inputs.as_pair(found)
        if any(key[0] == "replace" for key in self._keys) and not np.isin(values, (0.0, 1.0)).all():
            raise ValueError(f"{name} must be binary (0 or 1), because some questions have replacing traces")
        return indices.copy(), values.copy()

    def _discounts(self, given: Mapping[str, Any], steps: int) -> np.ndarray:
        """γ for each step and group."""
        result = np.empty((steps, len(self._keys)))
        for group, (_, _, discount, _) in enumerate(self._keys):
            if isinstance(discount, str):
                if discount not in given:
                    raise ValueError(f"discounts must give {discount!r}, which some questions are discounted by")
                values = np.asarray(given[discount], float)
                if values.shape != (steps,) or not ((values >= 0.0) & (values <= 1.0)).all():
                    raise ValueError(f"the discount {discount!r} must be {steps} numbers in [0, 1]")
                result[:, group] = values
            else:
                result[:, group] = discount
        return result

    # --- Looking, saving --------------------------------------------------------------------------

    def weights(self, name: str) -> np.ndarray:
        """A dense copy of the weights of one question."""
        column, group = self._place(name)
        w = np.zeros(self.n_features)
        met = self._row >= 0
        rows = self._row[met]
        w[met] = self._u[rows, column] + self._c[column] * self._z[group, rows]
        return w

    def trace(self, name: str) -> np.ndarray:
        """A dense copy of the trace that a question has, with others."""
        _, group = self._place(name)
        e = np.zeros(self.n_features)
        met = self._row >= 0
        e[met] = self._scales[group] * self._z[group, self._row[met]]
        return e

    def _place(self, name: str) -> tuple[int, int]:
        names = [question.name for question in self._questions]
        if name not in names:
            raise ValueError(f"there is no question {name!r}; there are {', '.join(names[:10])}")
        number = names.index(name)
        return int(self._column[number]), self._keys.index(self._questions[number].shares)

    def save(self, path: str | os.PathLike) -> None:
        """Write everything to one file, from which `Horde.load` goes on bit for bit. It appears whole or not at all."""
        settings = {
            "n_features": self.n_features,
            "questions": [asdict(question) for question in self._questions],
            "keys": [list(key) for key in self._keys],
            "steps": self.steps,
        }
        used = slice(self._rows)
        arrays: dict[str, np.ndarray] = {
            "row": self._row,
            "column": self._column,
            "u": self._u[used],
            "c": self._c,
            "v_old": self._v_old,
            "z": self._z[:, used],
            "on": self._on[:, used],
            "listed": self._listed[:, used],
            "counts": self._counts,
            "scales": self._scales,
            "gammas": self._gammas,
        }
        if self._here is not None:
            arrays |= {"here_indices": self._here[0], "here_values": self._here[1]}
        files.write_learner(path, KIND, settings, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Horde:
        """The horde that `save` wrote."""
        kind, settings, arrays = files.read_learner(path)
        if kind != KIND:
            raise ValueError(f"{path} holds a {kind}, not a horde")
        try:
            horde = cls(settings["n_features"])
            # Groups are in the order in which they came to be, which the questions alone do not tell.
            asked = [Question(**question) for question in settings["questions"]]
            horde.add(asked)
            if json.loads(json.dumps([list(key) for key in horde._keys])) != settings["keys"]:
                raise ValueError("its groups are not those of its questions")
            for name in ("row", "column", "c", "v_old", "counts", "scales", "gammas"):
                own, saved = getattr(horde, f"_{name}"), arrays[name]
                if own.shape != saved.shape or own.dtype != saved.dtype:
                    raise ValueError(f"its {name} does not fit")
                setattr(horde, f"_{name}", saved)
            horde._rows = int((arrays["row"] >= 0).sum())
            for name in ("u", "z", "on", "listed"):
                setattr(horde, f"_{name}", np.ascontiguousarray(arrays[name]))
            shapes = (horde._u.shape, horde._z.shape, horde._on.shape, horde._listed.shape)
            rows, m, g = horde._rows, len(asked), horde.groups
            if shapes != ((rows, m), (g, rows), (g, rows), (g, rows)):
                raise ValueError("its parts do not fit together")
            horde.steps = int(settings["steps"])
            if "here_indices" in arrays:
                horde._here = arrays["here_indices"], arrays["here_values"]
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise ValueError(f"{path} is damaged: {error}") from None
        return horde


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
