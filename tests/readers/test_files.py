"""Sources: packing, limits, standard input, and files that are no files or do not stay the same."""

import bz2
import gzip
import io
import lzma
import os
import sys

import numpy as np
import pytest

from zerogap.readers import DataError, read, tables
from zerogap.readers.files import open_source

TEXT = b"1 1:2\n-1 2:3\n"
PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def check(data):
    assert data.X.toarray().tolist() == [[2, 0], [0, 3]]
    assert data.y.tolist() == [1, -1]


@pytest.mark.parametrize("name", ["a.svm", "a.svmlight", "a.libsvm", "a.txt", "a.dat", "a", "a.t"])
@pytest.mark.parametrize("packing", ["", "gz", "bz2", "xz"])
def test_svmlight_is_what_nothing_else_is(tmp_path, name, packing):
    path = tmp_path / (f"{name}.{packing}" if packing else name)
    path.write_bytes(PACK[packing](TEXT) if packing else TEXT)
    data = read(path)
    check(data)
    assert data.name == str(path)


@pytest.mark.parametrize("packing", PACK)
def test_packing_is_told_from_the_bytes_not_the_name(tmp_path, packing):
    path = tmp_path / "plain.svm"
    path.write_bytes(PACK[packing](TEXT))
    check(read(path))
    path = tmp_path / f"packed.svm.{packing}"
    path.write_bytes(TEXT)
    check(read(str(path)))


def test_several_packed_parts_are_one_file(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(b"".join(gzip.compress(line) for line in TEXT.splitlines(keepends=True)))
    check(read(path))


@pytest.mark.parametrize("content", [TEXT, gzip.compress(TEXT, mtime=0)])
def test_standard_input(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    data = read("-")
    check(data)
    assert data.name == "<stdin>"
    assert not sys.stdin.buffer.closed


def test_standard_input_in_another_format(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,y\n1,2\n")))
    assert read("-", format="csv").X.tolist() == [[1.0]]
    file = io.BytesIO()
    np.savez(file, X=np.eye(2), y=[0, 1])
    file.seek(0)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
    assert read("-").X.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("packing", PACK)
def test_packed_files_cut_short_or_damaged_are_refused(tmp_path, packing):
    rows = b"".join(b"%d %d:%d\n" % (k, k, k * k) for k in range(1, 3000))
    packed = PACK[packing](rows)
    path = tmp_path / f"a.svm.{packing}"
    for content in (packed[:-1], packed[: len(packed) // 2], packed[:-20] + b"\0" * 20):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"a\.svm.*is damaged or cut short"):
            read(path)


@pytest.mark.parametrize("packing", PACK)
def test_bombs_are_refused(tmp_path, packing):
    path = tmp_path / f"a.svm.{packing}"
    path.write_bytes(PACK[packing](b"# nothing\n" * 200_000))
    assert path.stat().st_size < 100_000
    with pytest.raises(DataError, match="holds more than max_bytes=1500000 bytes when unpacked"):
        read(path, max_bytes=1_500_000)


def test_limit_holds_for_plain_files(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(b"1 1:1\n" * 1000)
    with pytest.raises(DataError, match="max_bytes=1000"):
        read(path, max_bytes=1000)


def read_while(path, change):
    with open_source(path, 1000) as stream:
        stream.read()
        change(path)


@pytest.mark.parametrize(
    "change",
    [lambda p: p.write_bytes(TEXT + TEXT), lambda p: os.truncate(p, 3), os.utime],
    ids=["grows", "shrinks", "is written again"],
)
def test_files_that_change_while_they_are_read_are_refused(tmp_path, change):
    path = tmp_path / "a.svm"
    path.write_bytes(TEXT)
    os.utime(path, ns=(0, 0))
    with pytest.raises(DataError, match="changed while"):
        read_while(path, change)
    read_while(path, lambda path: None)


@pytest.mark.posix
def test_what_is_no_file_is_an_os_error_with_its_name(tmp_path):
    folder, pipe, loop = tmp_path / "folder", tmp_path / "pipe", tmp_path / "loop"
    folder.mkdir()
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    for path in (folder, pipe, loop, tmp_path / "absent", tmp_path / "absent.csv"):
        with pytest.raises(OSError, match=path.name) as caught:
            read(path)
        assert str(caught.value.filename) == str(path)


@pytest.mark.posix
@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_unreadable_files_are_an_os_error(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(TEXT)
    path.chmod(0)
    with pytest.raises(PermissionError, match="secret"):
        read(path)


def test_unknown_formats_are_refused_with_the_choices(tmp_path):
    with pytest.raises(
        ValueError, match="one of svmlight, csv, tsv, parquet, arrow, jsonl, xlsx, npz, got 'xls'"
    ):
        read(tmp_path / "a", format="xls")


def test_reading_leaves_no_file_open(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(b"bad\n")
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(5):
        with pytest.raises(DataError):
            read(path)
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert after == before


@pytest.mark.posix
def test_too_little_memory_for_a_reader_s_threads_is_said_before_they_wait_for_it(
    tmp_path, monkeypatch
):
    path = tmp_path / "a.csv"
    path.write_text("a,y\n1,2\n2,3\n")
    assert read(path).X.tolist() == [[1], [2]]
    monkeypatch.setattr(tables, "_ROOM", 1 << 60)
    with pytest.raises(MemoryError, match=r"^reading csv needs \d+ MB of memory$"):
        read(path)
