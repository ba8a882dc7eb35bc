"""Saved, copied or pickled equals never stopped; what is not a whole saved learner is refused."""

import copy
import json
import os
import pickle
import re
import tracemalloc
import zipfile

import numpy as np
import pytest

import trueonline as to
from tests.saved_files import change_about, members, rewrite, write_members
from trueonline import files
from trueonline.inputs.saved_arrays import Resumable

# One class saves all learners over a memory, and one saves all definitions.
every_learner = pytest.mark.parametrize("learner_class", [to.TrueOnlineTD, to.OnlineLambdaReturn])
N, T = 12, 60


def halve(t):
    return 0.5 / (1.0 + 0.1 * t)


def through_file(learner, tmp_path):
    learner.save(tmp_path / "learner.npz")
    schedule = {"step_size": learner.step_size} if callable(learner.step_size) else {}
    return to.load(tmp_path / "learner.npz", **schedule)


every_way = pytest.mark.parametrize(
    "through",
    [through_file, lambda learner, _: pickle.loads(pickle.dumps(learner)), lambda learner, _: copy.deepcopy(learner)],
)
FORMS = {"dense": lambda x: x, "active": np.flatnonzero, "pairs": lambda x: (np.flatnonzero(x), x[x != 0.0])}


@every_way
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("step_size", [0.1, halve])
@every_learner
def test_continues_bit_for_bit(learner_class, step_size, form, through, tmp_path):
    rng = np.random.default_rng(4)
    X = (rng.random((T + 1, N)) < 0.3).astype(float)
    learner = learner_class(N, step_size, 0.9, 0.95, initial_weights=rng.normal(size=N))
    other = None
    learner.start(FORMS[form](X[0]))
    for t in range(T):
        gamma = 0.0 if t == 33 else 0.95
        for each in (learner, other):
            if each is not None:
                each.update(float(X[t].sum()), FORMS[form](X[t + 1]), gamma)
        if t in (5, 20, 33, 40):
            other = through(learner, tmp_path)
            assert repr(other) == repr(learner)
        if other is not None:
            np.testing.assert_array_equal(other.weights, learner.weights)
            assert other.steps == learner.steps
    for each in (learner, other):
        each.reset()
    np.testing.assert_array_equal(other.weights, learner.weights)


@every_way
@every_learner
def test_new_and_ended_learners_survive(learner_class, through, tmp_path):
    learner = learner_class(N, 0.1, 0.9, 0.95)
    assert through(learner, tmp_path).steps == 0
    learner.start(1)
    learner.update(1.0, None)
    other = through(learner, tmp_path)
    with pytest.raises(RuntimeError, match="no episode has begun"):
        other.update(1.0, 2)
    np.testing.assert_array_equal(other.weights, learner.weights)


def test_a_diverged_learner_can_be_saved(tmp_path):
    learner = to.AccumulateTD(3, 2.0, 1.0, 0.9)
    learner.run(np.random.default_rng(0).normal(size=(3000, 3)), np.ones(2999))
    assert learner.diverged
    assert through_file(learner, tmp_path).diverged


def test_a_schedule_must_be_handed_back(tmp_path):
    path = tmp_path / "m.npz"
    to.TrueOnlineTD(N, halve, 0.9, 0.95).save(path)
    with pytest.raises(
        ValueError, match="saved with a step-size schedule, which is code: load it with step_size=schedule"
    ):
        to.load(path)
    to.TrueOnlineTD(N, 0.1, 0.9, 0.95).save(path)
    with pytest.raises(ValueError, match=r"saved with the constant step_size 0.1: load it without step_size"):
        to.load(path, step_size=halve)


@pytest.fixture
def saved(tmp_path):
    learner = to.TrueOnlineTD(N, 0.1, 0.9, 0.95)
    learner.run(np.arange(40) % N, np.ones(39))
    path = tmp_path / "m.npz"
    learner.save(path)
    return path


def test_a_file_with_a_flipped_byte_is_refused_or_harmless(saved):
    whole = saved.read_bytes()
    weights = to.load(saved).weights
    rng = np.random.default_rng(5)
    refused = 0
    directory = whole.rindex(b"PK\x01\x02") - 200  # where archives keep how each part is packed
    for place in [*rng.choice(len(whole), size=150, replace=False), *range(directory, len(whole))]:
        broken = bytearray(whole)
        broken[place] ^= 0xFF
        saved.write_bytes(broken)
        try:
            np.testing.assert_array_equal(to.load(saved).weights, weights)
        except ValueError:
            refused += 1
    assert refused > 75


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"u": None}, "damaged"),
        ({"u": np.zeros(3)}, "damaged"),
        ({"z": np.zeros(1)}, "damaged"),
        ({"owner": np.full(12, 99)}, "damaged"),
        ({"here_indices": np.array([99])}, "damaged"),
        ({"kind": "Popen"}, "holds a Popen, which is none of AccumulateTD"),
        ({"settings": {"n_features": 3, "step_size": 0.1, "trace_decay": 0.9, "discount": 0.9}}, "damaged"),
        ({"settings": {"n_features": N, "step_size": -1, "trace_decay": 0.9, "discount": 0.9}}, "damaged"),
        ({"settings": {"step_size": 0.1}}, "damaged"),
    ],
)
def test_parts_that_do_not_fit_are_refused_although_the_digest_fits(saved, changes, message):
    rewrite(saved, **changes)
    with pytest.raises(ValueError, match=message):
        to.load(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("{}", "is not a saved learner"),
        ("nonsense", "not a saved learner"),
        ("3", "not a saved learner"),
        ("[" * 100_000, "not a saved learner"),
        (lambda about: about.update(version=99), "has version 99 of the format, this package reads version 4; install"),
        (lambda about: about.pop("members"), "does not say what it holds"),
        (lambda about: about.update({"class": 3}), "does not say what it holds"),
        (lambda about: about["settings"].update(discount=0.8), "its content has changed"),
        (lambda about: about["members"].pop("z"), "its members are not those on its list"),
        (lambda about: about["members"].update(more=["<f8", [1]]), "its members are not those on its list"),
        (lambda about: about["members"].update(z=["<f8", [10**15]]), "does not have the length of its shape"),
        (lambda about: about["members"].update(z=["|O8", [1]]), "must hold numbers or text"),
        (lambda about: about["members"].update(z=["<f8", [-1]]), "must hold numbers or text"),
        (lambda about: about["members"].update(z=3), "damaged"),
        (lambda about: about.update(digest="0" * 64), "its content has changed"),
    ],
)
def test_what_the_file_says_of_itself_is_checked(saved, change, message):
    change_about(saved, change)
    with pytest.raises(ValueError, match=message):
        to.load(saved)


def test_a_file_of_the_format_before_is_named_as_such(saved):
    np.savez(saved, about=np.array(json.dumps({"format": "trueonline learner", "version": 3})), u=np.zeros(3))
    with pytest.raises(ValueError, match=r"version 3 or lower of the format, .* version 4; install the trueonline"):
        to.load(saved)


def test_members_that_nobody_listed_are_not_unpacked(saved):
    parts = members(saved)
    write_members(saved, {**parts, "more.npy": b"0"})
    with pytest.raises(ValueError, match="its members are not those on its list"):
        to.load(saved)
    write_members(saved, {**parts, "u.npy": parts["u.npy"] + bytes(10**8)}, zipfile.ZIP_DEFLATED)
    assert saved.stat().st_size < 10**6
    tracemalloc.start()
    with pytest.raises(ValueError, match="its zip directory is not one that this package writes"):
        to.load(saved)
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()


def test_a_length_in_the_directory_that_hides_a_member_is_noticed(saved):
    whole = saved.read_bytes()
    entries = [match.start() for match in re.finditer(b"PK\x01\x02", whole)]
    ends = [*entries[1:], whole.index(b"PK\x05\x06")]
    assert len(entries) > 5
    for entry, begin, end in zip(entries, ends, ends[1:], strict=False):
        for field in (30, 32):  # the lengths of the extra field and of the comment: the next entry becomes a part of them
            broken = bytearray(whole)
            length = int.from_bytes(whole[entry + field : entry + field + 2], "little")
            broken[entry + field : entry + field + 2] = (length + end - begin).to_bytes(2, "little")
            saved.write_bytes(broken)
            with pytest.raises(ValueError, match="damaged"):
                to.load(saved)


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o007])
def test_a_file_has_the_mode_that_the_umask_allows_and_never_a_wider_one(mask, tmp_path):
    before = os.umask(mask)
    try:
        learner = to.TrueOnlineTD(3, 0.1, 0.9, 0.9)
        learner.save(tmp_path / "m.npz")
        assert (tmp_path / "m.npz").stat().st_mode & 0o777 == 0o666 & ~mask
        (tmp_path / "m.npz").chmod(0o600)
        learner.save(tmp_path / "m.npz")
        assert (tmp_path / "m.npz").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


class Trap:
    """Unpickling this would create a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_nothing_is_unpickled(saved, tmp_path):
    sprung = tmp_path / "sprung"
    np.savez(saved, about=np.array([Trap(sprung)], dtype=object))
    with pytest.raises(ValueError, match="version 3 or lower"):
        to.load(saved)
    saved.write_bytes(pickle.dumps(Trap(sprung)))
    with pytest.raises(ValueError, match="not a saved learner"):
        to.load(saved)
    assert not sprung.exists()


def test_a_failed_save_leaves_the_old_file_and_no_litter(saved, monkeypatch):
    before = saved.read_bytes()

    def full_disk(file, *arguments, **options):
        file.write(b"half a file")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full_disk)
    with pytest.raises(OSError, match="No space left"):
        to.TrueOnlineTD(3, 0.1, 0.9, 0.9).save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_what_is_missing_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        to.load(tmp_path / "none.npz")
    with pytest.raises(FileNotFoundError):
        to.TrueOnlineTD(3, 0.1, 0.9, 0.9).save(tmp_path / "none" / "m.npz")


def test_a_state_that_is_no_mapping_is_refused():
    resumable = Resumable()
    resumable._state, resumable._parts = {"numbers": np.zeros(2)}, {}
    with pytest.raises(ValueError, match="the state of a Resumable must be a mapping from names to arrays, got 3"):
        resumable.restore(3)


def test_content_that_holds_sealed_content_is_sealed():
    inner = files.seal(b"1; " + files.UNSEALED)
    outer = files.seal(inner + b"; 2; " + files.UNSEALED + b"; 3")
    assert files.is_sealed(outer)
    assert not any(files.is_sealed(outer.replace(number, b"4")) for number in (b"; 2", b"; 3"))


def test_a_lock_touches_no_file_of_somebody_else(tmp_path):
    (tmp_path / "precious").write_text("words")
    (tmp_path / ".out.lock").symlink_to(tmp_path / "precious")
    with pytest.raises(ValueError, match="is not a lock of this package"):
        files.Lock(tmp_path / "out")
    (tmp_path / ".out.lock").unlink()
    (tmp_path / ".out.lock").write_text("words")
    with pytest.raises(ValueError, match="is not a lock of this package"):
        files.Lock(tmp_path / "out")
    assert (tmp_path / "precious").read_text() == (tmp_path / ".out.lock").read_text() == "words"
