"""Predictions that somebody edits, and then the command that wrote them runs again."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile import FINE, REFUSED, PromiseError
from tests.hostile.changed_bytes import change
from tests.hostile.mutated_streams import command

PROMISE = "Predictions that were edited, and files of others, are not replaced without --fresh."
TRIALS = 200


def trial(rng: random.Random, folder: Path, shared: Path) -> str:
    ending = rng.choice(["csv", "parquet", "jsonl"])
    log, out = folder / "log.csv", folder / f"p.{ending}"
    log.write_text("time,a\n" + "".join(f"{i},{rng.gauss(0, 1)}\n" for i in range(60)))
    predict(log, out)
    edited = rng.random() < 0.8
    if edited:
        edit(rng, out)
    before = out.read_bytes()
    code, said = predict(log, out, fresh=False)
    if not edited:
        if code:
            raise PromiseError(f"the command does not replace its own predictions: {said}")
        return FINE
    if code == 0 or out.read_bytes() != before:
        raise PromiseError(f"edited predictions were replaced without --fresh, with status {code}: {said}")
    if out.name not in said or "--fresh" not in said:
        raise PromiseError(f"the refusal does not name the file and the way out: {said}")
    return REFUSED


def predict(log: Path, out: Path, fresh: bool = True) -> tuple[int, str]:
    """Run the command, and return its status and what it said."""
    result = command(log, "--out", str(out), *["--fresh"] * fresh)
    return result.exit_code, result.output


def edit(rng: random.Random, out: Path) -> None:
    """Change the file: its bytes, or its content by a program that knows the format."""
    if out.suffix == ".parquet" and rng.random() < 0.6:
        table = pq.read_table(out)
        column = rng.randrange(1, table.num_columns)
        values = [None if value is None else value + 1.0 for value in table.column(column).to_pylist()]
        pq.write_table(
            table.set_column(column, table.schema.field(column), pa.array(values, table.schema.field(column).type)), out
        )
    elif out.suffix != ".parquet" and rng.random() < 0.5:
        out.write_bytes(out.read_bytes() + rng.choice([b"\n", b"99,1,1,1,1\n", b"mine\n"]))
    else:
        out.write_bytes(change(rng, out.read_bytes()))
