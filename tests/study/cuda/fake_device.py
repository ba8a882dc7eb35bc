"""A device that runs batches on the CPU, with the kernel of the engine local."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from trueonline.study.engines.cuda.engine import OutOfMemoryError


class OnCpu:
    """Runs batches one after another. `room` is the number of bytes that it has for a batch's trajectories and errors."""

    def __init__(self, most_bytes=1e9, room=np.inf, slots=2, most_steps=1e9):
        self.most_bytes, self.room, self.slots, self.most_steps = most_bytes, room, slots, most_steps
        self.batches, self.refused, self.under_way = [], 0, 0

    def turn(self):
        return nullcontext()

    def submit(self, batch):
        size = sum(each.nbytes for each in batch.inputs) + sum(
            8 * len(launch.rows) * batch.cells for launch in batch.launches
        )
        if size > self.room:
            self.refused += 1
            raise OutOfMemoryError(f"{size} bytes")
        self.under_way += 1
        assert self.under_way <= self.slots
        self.batches.append(batch)
        return batch

    def collect(self, batch):
        self.under_way -= 1
        return [self._launch(batch, launch) for launch in batch.launches]

    def _launch(self, batch, launch):
        errors = np.empty((len(launch.rows), len(batch.alphas), len(batch.lams)))
        for row, error in zip(launch.rows, errors, strict=True):
            case = batch.cases[row]
            run = batch.states[row], batch.rewards[row], batch.discounts[row], batch.chances[row]
            arrays = batch.features[case], batch.roots[case], batch.targets[case], batch.firsts[case]
            launch.method.sweep(arrays, batch.discount, batch.after, [run], batch.alphas, batch.lams, error[None])
        return errors
