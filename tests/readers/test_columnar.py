"""Texts of Parquet, which are read as references, are those that were written."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zerogap.readers import DataError
from zerogap.readers.columnar import parquet_batches, read_parquet
from zerogap.readers.files import open_source

WORDS = np.array(["", "a", "ä", "long " * 40, None], dtype=object)
KINDS = (pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string()))


@pytest.mark.parametrize("stored", [False, True], ids=["plain", "as in pyarrow"])
@pytest.mark.parametrize("dictionary", [False, True], ids=["each", "once"])
def test_tables_come_back(tmp_path, stored, dictionary):
    rng = np.random.default_rng(0)
    columns = {f"c.{k}": pa.array(rng.choice(WORDS, 200)).cast(t) for k, t in enumerate(KINDS)}
    table = pa.table({**columns, "number": rng.standard_normal(200)})
    path = tmp_path / "table.parquet"
    pq.write_table(table, path, 30, use_dictionary=dictionary, store_schema=stored)
    expected = pq.read_table(path)
    with open_source(path, 1 << 30) as stream:
        found = read_parquet(stream, 1 << 20)
    assert found.schema == expected.schema
    assert found.to_pydict() == expected.to_pydict()
    with open_source(path, 1 << 30) as stream:
        batches = list(parquet_batches(stream, 1 << 20, 47))
    assert len(batches) >= 5
    assert {batch.schema for batch in batches} == {expected.schema}
    assert pa.Table.from_batches(batches).to_pydict() == expected.to_pydict()
    with open_source(path, 5000) as stream, pytest.raises(DataError, match="when unpacked"):
        read_parquet(stream, 1 << 20)
