"""Files that mean harm: each is refused in one line, at once, before memory is taken for it.

What memory a refusal takes is measured by `make crafted`.
"""

import contextlib
import gzip
import io
import json
import time
import zipfile

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zerogap.io.nesting import Rise, depth
from zerogap.readers import DataError, read

DEEP = 200_000
COMMAS = b"," * 600_000 + b"\n"
NAMES = b",".join(b"c%d" % k for k in range(600_000)) + b"\n"
TEXTS = {
    "deep.jsonl": b'{"a":' + b"[" * DEEP + b"]" * DEEP + b',"y":1}\n{"a":[],"y":2}\n',
    "deep objects.jsonl": b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"\n",
    "deep and open.jsonl": b'{"a":' + b"[" * DEEP,
    "deep.json": b'[{"a":' + b"[" * DEEP + b"]" * DEEP + b"}]",
    "columns that are lists.json": b'{"columns":[[1],{"a":1}],"data":[[1,2],[3,4]]}',
    "rows that are numbers.json": b'{"columns":["a","y"],"data":[1,2]}',
    "half a character.jsonl": b'{"a":"\\ud800","y":1}\n{"a":"b","y":2}\n',
    "half a character as name.json": b'[{"\\ud800":"a","y":1},{"\\ud800":"b","y":2}]',
    "a number of 400 digits.json": b'[{"a":' + b"9" * 400 + b',"y":1},{"a":1,"y":2}]',
    "an array of numbers.json": b'[1, {"a": 2}]',
    "other names in each row.json": json.dumps([{f"k{k}": 1} for k in range(9000)]).encode(),
    "zeros.jsonl": b'{"a":1,"y":1}\n\0\0{"a":1}\n',
    "commas.csv": COMMAS + COMMAS,
    "columns.csv": NAMES + b"1," * 599_999 + b"1\n",
    "zeros.csv": b"a,y\n1,\0000\n2,1\n",
    "quote without end.csv": b'a,y\n"' + b"x\n" * 100_000,
    "quotes.csv": b'a,y\n"' + b'"' * 300_000,
    "digits.csv": b"a,y\n" + b"1" * 300_000 + b",1\n2,0\n",
    "column 2^62.svm": b"1 1:2 4611686018427387904:1\n",
    "zeros.svm": b"\0" * 300_000,
    "colons.svm": b"1 " + b":" * 300_000 + b"\n",
    "digits.svm": b"1 1:" + b"1" * 300_000 + b"\n",
    "packed line.svm.gz": gzip.compress(b"#" * (80 << 20), 1),
}


@pytest.fixture(scope="module", autouse=True)
def _everything_loaded(tmp_path_factory):
    """Read a good file of each kind first, so that loading code counts for none."""
    folder = tmp_path_factory.mktemp("good")
    for name in ("good.csv", "good.jsonl", "good.svm", "good.xlsx", "good.npz", "good.parquet"):
        path = folder / name
        if name == "good.npz":
            np.savez(path, **{**ROW, "shape": np.ones(2, int), "y": np.ones(1)})
        elif name == "good.parquet":
            pq.write_table(pa.table({"a": ["u", "v"], "y": [0, 1]}), path)
        else:
            rows = b"<row><c><v>1</v></c></row>"
            texts = {"csv": b"a,y\n1,0\n2,1\n", "jsonl": b'{"a":1,"y":2}\n{"a":2,"y":1}\n'}
            texts |= {"svm": b"1 1:1\n-1 1:2\n", "xlsx": sheet(rows)}
            path.write_bytes(texts[name[5:]])
        with contextlib.suppress(DataError):
            read(path, target=None if ".svm" in name else "y")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TEXTS)
def test_texts_are_refused_at_once(tmp_path, name):
    path = tmp_path / name.replace(" ", "_")
    path.write_bytes(TEXTS[name])
    assert refusal(path)


def refusal(path):
    """Return the one line with which a file is refused, within a second of this process."""
    began = time.process_time()
    with pytest.raises(DataError) as caught:
        read(path, target=None if ".svm" in path.name else "y")
    assert time.process_time() - began < 1.0
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 2100
    return message


def test_messages_are_short_however_long_the_names_are(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(f"{'a' * 100_000},b\n1,2\n")
    assert refusal(path).endswith(" ...")


def array(header, content=b""):
    text = repr(header).encode()
    return b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text + content


def declared(descr, shape):
    return array({"descr": descr, "fortran_order": False, "shape": shape})


def zipped(parts):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


ZEROS = bytes(8_000_000)
ROW = {"data": np.ones(1), "indices": np.zeros(1, int), "indptr": np.array([0, 1])}
ARRAYS = {
    "2^62 columns": {"X": declared("<f8", (1, 2**62))},
    "2^62 columns, no rows": {"X": declared("<f8", (0, 2**62))},
    "rows below zero": {"X": array({"descr": "<f8", "fortran_order": False, "shape": (-1, -8)})},
    "texts of no size": {"X": declared("<U0", (10**9, 1000)), "y": declared("<U0", (10**9,))},
    "objects": {"X": declared("|O", (1, 1))},
    "a header of parentheses": {"X": b"\x93NUMPY\1\0\x60\xea" + b"(" * 60_000},
    "a bomb without targets": {"X": declared("<f8", (1000, 1000)) + ZEROS},
    "a bomb with other targets": {"X": declared("<f8", (1000, 1000)) + ZEROS,
                                  "y": declared("<f8", (3,)) + bytes(24)},
    "a bomb of one dimension": {"X": declared("<f8", (10**6,)) + ZEROS},
    "2^62 columns in CSR": {**ROW, "shape": np.array([1, 2**62]), "y": np.ones(1)},
    "2^62 rows in CSR": {**ROW, "shape": np.array([2**62, 1]), "y": np.ones(1)},
    "an index of 2^63": {**ROW, "indices": np.array([2**63], np.uint64), "shape": np.ones(2, int),
                         "y": np.ones(1)},
}  # fmt: skip


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_refused_at_once(tmp_path, name):
    parts, path = ARRAYS[name], tmp_path / "arrays.npz"
    if "shape" in parts:
        np.savez(path, **parts)
    else:
        path.write_bytes(zipped({f"{key}.npy": content for key, content in parts.items()}))
    assert refusal(path)


def sheet(rows):
    """Return a spreadsheet whose one sheet has these rows, in XML."""
    file = io.BytesIO()
    openpyxl.Workbook().save(file)
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = "xl/worksheets/sheet1.xml"
    start = (
        b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
    )
    return zipped({**parts, name: start + rows + b"</sheetData></worksheet>"})


SHEETS = {
    "spaces": b" " * 30_000_000,
    "one long text": b'<row><c t="inlineStr"><is><t>' + b"a" * 30_000_000 + b"</t></is></c></row>",
    "empty rows": b"<row/>" * 1_000_000,
    "deep": b"".join(b"<a%x>" % (k * 2654435761 % 2**32) for k in range(20_000)),
    "a column beyond all": b'<row><c r="ZZZZZZZ9"><v>1</v></c></row>',
    "a text that is not there": b'<row><c t="s"><v>99999999</v></c></row>',
    "a number of 10 000 digits": b"<row><c><v>" + b"1" * 10_000 + b"</v></c></row>",
    "a cell far away": b'<row><c r="A1"><v>1</v></c></row>'
    b'<row r="1048576"><c r="XFD1048576"><v>2</v></c></row>',
}


@pytest.mark.parametrize("name", SHEETS)
def test_sheets_are_refused_at_once(tmp_path, name):
    path = tmp_path / "table.xlsx"
    path.write_bytes(sheet(SHEETS[name]))
    assert refusal(path)


LONG = pa.DictionaryArray.from_arrays(np.zeros(100_000, np.int32), ["a" * 10_000_000])
ONE_PER_ROW = np.arange(100_001, dtype=np.int32)
REFERENCES = {  # to one text, a terabyte if each were written out
    "texts": LONG,
    "bytes": LONG.cast(pa.dictionary(pa.int32(), pa.binary())),
    "texts in lists": pa.ListArray.from_arrays(ONE_PER_ROW, LONG),
    "texts in records": pa.StructArray.from_arrays([LONG], ["text"]),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_references_to_long_texts_are_refused_at_once(tmp_path, name):
    path = tmp_path / "table.parquet"
    table = pa.table({"a": REFERENCES[name], "y": np.arange(100_000) % 2})
    pq.write_table(table, path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 100_000
    assert "bytes when unpacked" in refusal(path)


def test_packed_batches_of_arrow_are_refused_one_by_one(tmp_path):
    batch = pa.record_batch({"a": np.zeros(1_000_000), "y": np.zeros(1_000_000)})
    for name, make in (("index", pa.ipc.new_file), ("stream", pa.ipc.new_stream)):
        path = tmp_path / f"{name}.arrow"
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with make(path, batch.schema, options=options) as file:
            for _ in range(4):
                file.write_batch(batch)
        with pytest.raises(DataError, match="needs 32000000 bytes when unpacked, max_bytes=3"):
            read(path, target="y", max_bytes=30_000_000)


def nesting(value):
    inside = value.values() if isinstance(value, dict) else value
    return 1 + max(map(nesting, inside), default=0) if isinstance(value, list | dict) else 0


def made(rng, most):
    """Return a random value of JSON whose texts look like brackets, quotes and escapes."""
    kind = rng.integers(3) if most else 0
    if kind == 0:
        return ["[", '"[', '\\"[', "\\\\", '\\"{', 3, None, "]]"][rng.integers(8)]
    inside = [made(rng, most - 1) for _ in range(rng.integers(4))]
    return inside if kind == 1 else {f'{k}"[': value for k, value in enumerate(inside)}


def test_depths_are_those_of_the_parser():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        value = [made(rng, int(rng.integers(8)))]
        text = json.dumps(value, ensure_ascii=bool(rng.integers(2))).encode()
        assert depth(text) == nesting(value)
        rise = Rise()
        for start in range(0, len(text), 7):
            rise.add(text[start : start + 7])
        assert rise.most >= nesting(value) - 7


def test_a_text_of_open_strings_takes_no_longer_than_others():
    began = time.process_time()
    assert depth(b'{"a":"' + b'\\"' * 1_000_000) == 1
    assert depth(b'"a' * 1_000_000) == 0
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize("name", ["Q", ".", "/", "__MACOSX/"])
def test_files_in_a_zip_may_have_odd_names(name, tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(zipped({name: b"x,y\n1,2\n2,3\n"}).replace(b"Q", b"\0"))  # ends a name
    with pytest.raises(DataError, match="is a zip of 0 files"):
        read(path, target="y")
    path.write_bytes(zipped({name: b"", "a.csv": b"x,y\n1,2\n2,3\n"}).replace(b"Q", b"\0"))
    assert read(path, target="y").X.tolist() == [[1.0], [2.0]]
