"""Whatever lies in a folder, opening and reading it gives the rows or a clear refusal."""

import json
import os
import zlib

import numpy as np
import pytest
from scipy import sparse

from zerogap.store import Store, StoreError, write_store
from zerogap.store.manifest import _digest


@pytest.fixture
def store(tmp_path):
    X = sparse.random(300, 9, 0.4, format="csr", random_state=0)
    y, weight = np.array(["a", "b", "c"])[np.arange(300) % 3], np.ones(300)
    return write_store(tmp_path / "store", [(X, y, weight)])


def edit(store, change):
    """Change the manifest as someone would who can compute its fingerprint."""
    path = store.path / "manifest.json"
    content = json.loads(path.read_text())
    change(content)
    content["fingerprint"] = _digest(content)
    path.write_text(json.dumps(content))


def setter(*keys):
    *path, last, value = keys

    def change(content):
        for key in path:
            content = content[key]
        content[last] = value

    return change


def test_a_manifest_that_says_the_same_is_believed(store):
    edit(store, lambda content: None)
    assert Store(store.path).fingerprint == store.fingerprint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (setter("format", "tar"), "not that of a zerogap store"),
        (setter("version", [2, 0]), r"has format 2\.0, this version of zerogap reads 1\.x"),
        (setter("version", [0, 9]), r"has format 0\.9"),
        (setter("version", "1.0"), "its version is no version"),
        (setter("blocks", []), "it has no blocks"),
        (setter("blocks", 1, [1, 2, 3]), "block 1 is no list of five sizes"),
        (setter("blocks", 1, 0, -100), "block 1 is no list of five sizes"),
        (setter("blocks", 1, 0, True), "block 1 is no list of five sizes"),
        (setter("blocks", 1, 0, 0), "the sizes of block 1 are impossible"),
        (setter("blocks", 1, 0, 2**62), "the sizes of block 1 are impossible"),
        (setter("blocks", 1, 1, 5), "block 1 has not the size of its arrays"),
        (setter("blocks", 1, 3, 64), "block 1 has not the size of its arrays"),
        (setter("blocks", 1, 2, 0), "block 1 overlaps the one before it"),
        (setter("blocks", 2, 2, 2**40 + 1), "block 2 is not aligned"),
        (setter("n_samples", 301), "the rows of its blocks do not add up"),
        (setter("n_samples", -1), "its sizes are no sizes"),
        (setter("stored", 7), "the values of its blocks do not add up"),
        (setter("n_features", 0), "n_features is 0"),
        (setter("n_features", 2**31), "n_features is 2147483648"),
        (setter("dtype", "object"), "neither float32 nor float64"),
        (setter("sparse", 1), "sparse or weighted"),
        (setter("sparse", False), "block 0 has not 9 values for each row"),
        (setter("data", "../../etc/passwd"), "data is not 0 or 1"),
        (setter("data", True), "data is not 0 or 1"),
        (setter("total_weight", -1.0), "total_weight is no such number"),
        (setter("total_weight", float("nan")), "total_weight is no such number"),
        (setter("classes", ["a"]), "classes are no classes"),
        (setter("classes", "labels", ["a", "b", 3]), "a class is no str"),
        (setter("classes", "labels", ["a", "b", "b"]), "its classes"),
        (setter("classes", "type", "object"), "no classes"),
        (setter("class_weights", [1.0]), "class_weights are not one positive number"),
        (setter("feature_names", ["x"]), "feature_names are not one name"),
        (setter("encoder", "x"), "encoder or source"),
        (lambda content: content.pop("stored"), "it lacks stored"),
    ],
)
def test_wrong_manifests_are_refused(store, change, message):
    edit(store, change)
    with pytest.raises(StoreError, match=message) as caught:
        Store(store.path)
    assert str(caught.value).startswith(f"{store.path}: ")
    assert "\n" not in str(caught.value)


def test_blocks_beyond_the_file_are_refused(store):
    edit(store, setter("blocks", 2, 2, 2**40))
    with pytest.raises(StoreError, match=r"blocks-0.bin has \d+ bytes, its blocks end at \d+"):
        Store(store.path)


def test_a_manifest_with_one_digit_changed_is_refused(store):
    path = store.path / "manifest.json"
    path.write_text(path.read_text().replace('"n_features": 9', '"n_features": 8'))
    with pytest.raises(StoreError, match="its fingerprint differs"):
        Store(store.path)


def test_damaged_manifests_raise_nothing_else(store):
    """Bytes changed, cut and repeated at random."""
    path = store.path / "manifest.json"
    text, rng = path.read_bytes(), np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        damaged = bytearray(text)
        for _ in range(rng.integers(1, 4)):
            place = int(rng.integers(len(damaged)))
            match rng.integers(3):
                case 0:
                    damaged[place] = rng.integers(256)
                case 1:
                    del damaged[place : place + int(rng.integers(1, 50))]
                case 2:
                    damaged[place:place] = damaged[place : place + 20]
        path.write_bytes(damaged)
        try:
            Store(store.path)
        except StoreError:
            refused += 1
    assert refused > 250  # what lies between the values may change


@pytest.mark.parametrize("text", ["[" * 100_000, "", "null", "[]", "1" * 10_000, "\udc80"])
def test_strange_json_is_refused(store, text):
    (store.path / "manifest.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(StoreError, match=r"manifest.json is (damaged|not that of)"):
        Store(store.path)


@pytest.mark.posix
@pytest.mark.parametrize("name", ["manifest.json", "blocks-0.bin"])
def test_links_pipes_and_folders_are_refused(store, tmp_path, name):
    path, elsewhere = store.path / name, tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    with pytest.raises(StoreError, match=f"{name} cannot be read"):
        Store(store.path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StoreError, match=f"{name} is not a regular file"):
        Store(store.path)
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError, match=f"{name} is not a regular file"):
        Store(store.path)
    path.rmdir()
    with pytest.raises(StoreError, match=r"no manifest\.json|blocks-0\.bin is missing"):
        Store(store.path)


def test_what_is_no_folder_is_no_store(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such store"):
        Store(tmp_path / "missing")
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="is a file, not a store; zerogap data convert"):
        Store(tmp_path / "file")
    with pytest.raises(StoreError, match="it is no store, or an unfinished one"):
        Store(tmp_path)


def overwrite(store, k, name, value):
    """Put a value at the beginning of an array of a block, with a checksum to match."""
    block, path = store.blocks[k], store.path / "blocks-0.bin"
    data = bytearray(path.read_bytes())
    raw = np.frombuffer(data, np.uint8, block.nbytes, block.offset)
    arrays = store._layout.views(raw, block.rows, block.stored)
    arrays[name][0] = value
    path.write_bytes(data)
    edit(store, setter("blocks", k, 4, zlib.crc32(raw)))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("indices", 9, "column index 9, but there are 9 columns"),
        ("indices", -1, "column index -1"),
        ("indices", 8, "do not increase along a row"),
        ("indptr", 1, "indptr runs from 1"),
        ("indptr", -5, "indptr runs from -5"),
        ("values", np.nan, "NaN"),
        ("values", np.inf, "infinity"),
        ("y", 3, "codes of classes that do not exist"),
        ("y", -1, "codes of classes that do not exist"),
        ("y", 0.5, "codes of classes that do not exist"),
        ("y", np.nan, "impossible targets or weights"),
        ("weight", 0, "impossible targets or weights"),
        ("weight", np.inf, "impossible targets or weights"),
    ],
)
def test_values_that_would_lead_kernels_astray_are_refused(store, name, value, message):
    overwrite(store, 1, name, value)
    changed = Store(store.path)
    changed.read(0)
    with pytest.raises(StoreError, match=f"block 1 is damaged: .*{message}"):
        changed.read(1)


def test_every_bit_counts(store):
    path = store.path / "blocks-0.bin"
    data, rng = path.read_bytes(), np.random.default_rng(0)
    block = store.blocks[0]
    for place in rng.integers(block.offset, block.offset + block.nbytes, 50):
        damaged = bytearray(data)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        with pytest.raises(StoreError, match="block 0 is damaged: its checksum differs"):
            Store(store.path).read(0)


def test_a_file_that_shrinks_is_noticed(store):
    os.truncate(store.path / "blocks-0.bin", 100)
    with pytest.raises(StoreError, match="block 1 is damaged: the file has become shorter"):
        store.read(1)
