"""A recording in files of several kinds, for tests of `trueonline predict`."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.streams.predict_calls import recording


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording")
    columns = recording()
    order = ["c", "force", "a", "b"]  # any order, and columns that nobody asked for
    rows = pa.table({**{name: columns[name] for name in order}, "other": np.zeros(len(columns["a"]))})
    pyarrow.csv.write_csv(rows, folder / "log.csv")
    pq.write_table(rows, folder / "log.parquet")
    (folder / "log.csv.gz").write_bytes(gzip.compress((folder / "log.csv").read_bytes()))
    return folder
