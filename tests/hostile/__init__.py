"""Trials of what the package promises a user who runs it for months: `python -m tests.hostile`, or `make test-hostile`.

Each file of `KINDS` holds one kind of trial:

- `PROMISE`: what must hold, in one line.
- `TRIALS`: how many there are in 20 minutes on two cores.
- `prepare(shared)`: optional. Makes files that all trials of the kind share.
- `trial(rng, folder, shared)`: one trial. Everything that it chooses comes from `rng`, and everything that it writes goes to
  `folder`. It returns `REFUSED`, `FINE`, a `Counter` of both, or a text that says why the trial cannot be made here. A promise
  that is broken is an exception, mostly `PromiseError`.

Trials run in worker processes. So a crash, a hang and a gigabyte of memory are outcomes of a trial and not the end of all.
"""

KINDS = (
    "mutated_streams",
    "changed_bytes",
    "crafted_values",
    "killed_commands",
    "bad_disks",
    "api_calls",
    "hostile_pages",
    "shared_learners",
    "own_classes",
    "edited_outputs",
    "wild_rewards",
)
REFUSED, FINE, FAILED, SKIPPED = "refused", "fine", "failed", "skipped"


class PromiseError(AssertionError):
    """A promise that does not hold."""
