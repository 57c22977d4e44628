"""Data sets: simulated and real ones, their files, and `zerogap data`."""

import bz2
import doctest
import gzip
import hashlib
import io
import json
import math
import re
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest
from scipy.sparse import issparse

from zerogap import datasets
from zerogap.datasets import base, files, generators, mnist, raw_tables, tables
from zerogap.datasets.files import DataFile

# Rows and counts of the labels in increasing order, for training and for test.
KNOWN = {
    "mnist": (
        [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
        [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
    ),
    "adult": ([24720, 7841], [12435, 3846]),
    "adult-codes": ([24720, 7841], [12435, 3846]),
    "arrhythmia": ([207, 245], None),
    "skin": ([194198, 50859], None),
    "covtype": ([2942, 6022, 2160, 2160, 2396, 2160, 2160], None),
    "a9a": ([24720, 7841], [12435, 3846]),
    "ijcnn1": ([45137, 4853], [82989, 8712]),
    "w8a": ([48270, 1479], None),
    "reuters": ([7232, 538], [3120, 179]),
    "rcv1": ([11920, 11829], None),
    "basehock": ([994, 999], None),
    "pcmac": ([982, 961], None),
    "relathe": ([779, 648], None),
    "bloodcells": ([2483, 2499], [620, 624]),
    "lfw": ([77, 236, 121, 530, 109, 71, 144], None),
    "olivetti": ([10] * 40, None),
    "gravier": ([111, 57], None),
    "gordon": ([150, 31], None),
    "golub": ([47, 25], None),
    "alon": ([22, 40], None),
    "vert-partial": ([118, 66], None),
}
SIMULATED = [known.name for known in generators.SETS]
ELSEWHERE = ["mini-mnist", "bloodcells-images", "vert"]  # with tests of their own


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """An empty cache folder, and no data folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ZEROGAP_DATA", raising=False)
    monkeypatch.setattr(files, "SECONDS_BEFORE_SECOND_ATTEMPT", 0.0)
    return tmp_path / "cache" / "zerogap"


def same(one, other):
    if issparse(one):
        return all(
            np.array_equal(getattr(one, part), getattr(other, part))
            for part in ("data", "indices", "indptr")
        )
    return np.array_equal(one, other)


def kept(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# The registry


def test_registry_is_complete():
    assert sorted(datasets.names()) == sorted([*KNOWN, *SIMULATED, *ELSEWHERE])
    for name in datasets.names():
        about = datasets.info(name)
        assert about.name == name
        assert about.description.endswith(".")
        assert all((about.licence, about.citation, about.notes))
        assert (about.files == ()) == (name in SIMULATED)
        for file in about.files:
            assert re.fullmatch(r"[0-9a-f]{64}|", file.sha256)
            assert (file.sha256 == "") == (file.name == "xtrain.txt")
            assert file.url.startswith("https://") or not file.url
            assert file.size > 0


@pytest.mark.parametrize("module", [base, generators, raw_tables])
def test_docstring_examples(module):
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_unknown_names():
    with pytest.raises(ValueError, match="unknown data set 'mnits': did you mean 'mnist'"):
        datasets.load("mnits")
    with pytest.raises(ValueError, match="unknown data set 'qqqq': known are mnist, "):
        datasets.info("qqqq")


def test_simulated_data_need_nothing_heavy():
    code = (
        "import sys; from zerogap import datasets; datasets.load('simulated'); "
        "datasets.info('mnist'); "
        "print([m for m in ('numba', 'sklearn', 'scipy', 'pooch', 'cv2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# Real data


@pytest.mark.parametrize("name", KNOWN)
def test_counts(name, data_folder):
    data, about = datasets.load(name, data_folder), datasets.info(name)
    train, test = KNOWN[name]
    assert data.X.shape == (about.n_samples, about.n_features)
    assert data.y.shape == (about.n_samples,)
    labels, counts = np.unique(data.y, return_counts=True)
    assert counts.tolist() == train
    assert len(labels) == about.n_classes == len(data.target_names)
    if len(labels) == 2:
        assert labels.tolist() == [-1, 1]
    assert data.y.dtype == np.int64
    assert data.X.dtype in (np.float32, np.float64)
    values = data.X.data if issparse(data.X) else data.X
    assert np.isfinite(values).all()
    assert (data.y_test is None) == (data.X_test is None) == (test is None) == (about.n_test == 0)
    if test:
        assert data.X_test.shape == (about.n_test, about.n_features)
        assert np.unique(data.y_test, return_counts=True)[1].tolist() == test
    if data.feature_names is not None:
        assert len(set(data.feature_names)) == about.n_features
    if name not in ("mnist", "ijcnn1", "reuters"):  # the same again, where that takes no time
        again = datasets.load(name, data_folder)
        assert same(again.X, data.X)
        assert same(again.y, data.y)


def test_mnist_files_are_the_canonical_ones(data_folder):
    md5 = [
        "6bbc9ace898e44ae57da46a324031adb",
        "a25bea736e30d166cdddb491f175f624",
        "2646ac647ad5339dbf082846283269ea",
        "27ae3e4e09519cfbb04c329615203637",
    ]
    contents = datasets.info("mnist").contents(data_folder)
    assert [hashlib.md5(content).hexdigest() for content in contents] == md5


def test_mnist_rows(data_folder):
    full, mini = (datasets.load(name, data_folder) for name in ("mnist", "mini-mnist"))
    images = mnist.read_idx(datasets.info("mnist").contents(data_folder)[0])
    np.testing.assert_allclose(
        (full.X[59_999] * 0.3081 + 0.1307) * 255, images[59_999].ravel(), atol=1e-3
    )
    parts = datasets.load_mnist("mini-mnist", data_folder)
    assert same(mini.X, parts.X_train)
    assert same(mini.y_test, parts.y_test)
    assert (mini.info.n_samples, mini.info.n_test) == (len(mini.y), len(mini.y_test))


def test_adult_columns_mean_the_same_everywhere(data_folder):
    data, codes = (datasets.load(name, data_folder) for name in ("adult", "adult-codes"))
    names = np.array(data.feature_names)
    assert names[0] == "age"
    for X, raw, missing in (
        (data.X, codes.X, 2399),
        (data.X_test, codes.X_test, 1221),
    ):
        assert X[:, [name.endswith("=?") for name in names]].any(axis=1).sum() == missing
        for place, attribute in enumerate(tables.ATTRIBUTES):
            if attribute in tables.NUMBERS:
                assert same(X[:, names == attribute][:, 0], raw[:, place])
                continue
            block = X[:, np.char.startswith(names, f"{attribute}=")]
            assert set(block.ravel()) == {0.0, 1.0}
            assert (block.sum(axis=1) == 1).all()
            values = names[np.char.startswith(names, f"{attribute}=")]
            ranks = np.argsort(np.argsort(values))  # alphabetical
            assert same(ranks[block.argmax(axis=1)].astype(float), raw[:, place])
    first = dict(zip(data.feature_names, data.X_test[0], strict=True))
    assert (first["age"], first["education=11th"], first["sex=Male"]) == (25, 1, 1)


def test_arrhythmia_missing_values_are_zero(data_folder):
    data = datasets.load("arrhythmia", data_folder)
    text = gzip.decompress((data_folder / "arrhythmia/arrhythmia.data.gz").read_bytes()).decode()
    missing = np.array([[v == "?" for v in line.split(",")] for line in text.split()])
    counts = missing.sum(axis=0)
    assert {k: counts[k] for k in np.flatnonzero(counts)} == {10: 8, 11: 22, 12: 1, 13: 376, 14: 1}
    assert missing.any(axis=1).sum() == 384
    assert (data.X[missing[:, :-1]] == 0).all()
    assert (np.ptp(data.X, axis=0) == 0).sum() == 17


def test_skin_colours_stay_on_one_side(data_folder):
    data = datasets.load("skin", data_folder)
    colours = np.unique(data.X @ [65536, 256, 1])
    assert len(np.unique(data.groups)) == len(colours) == 51433
    first = np.unique(data.groups, return_index=True)[1]
    assert same(data.X[first][data.groups], data.X)  # a group is one colour
    parts = data.split(test_size=0.25, random_state=1)
    sides = [set((X @ [65536, 256, 1]).tolist()) for X in (parts.X, parts.X_test)]
    assert not sides[0] & sides[1]
    assert len(sides[1]) == math.ceil(0.25 * 51433)
    assert len(parts.y) + len(parts.y_test) == 245057
    assert parts.groups_test.shape == parts.y_test.shape


@pytest.mark.parametrize(("name", "different"), [("w8a", 34704), ("basehock", 1990)])
def test_equal_rows_are_one_group(name, different, data_folder):
    data = datasets.load(name, data_folder)
    assert len(np.unique(data.groups)) == different
    firsts = np.unique(data.groups, return_index=True)[1]
    assert abs(data.X - data.X[firsts][data.groups]).max() == 0
    parts = data.split()
    assert not set(parts.groups) & set(parts.groups_test)


def test_a9a_is_adult_in_bits(data_folder):
    data, adult = (datasets.load(name, data_folder) for name in ("a9a", "adult"))
    assert same(data.y, adult.y)
    assert set(data.X.data) == set(data.X_test.data) == {1.0}
    train = {row.tobytes() for row in data.X.toarray()}
    assert sum(row.tobytes() in train for row in data.X_test.toarray()) == 5528  # as noted


@pytest.mark.parametrize("name", ["rcv1", "reuters"])
def test_rows_have_norm_one(name, data_folder):
    data = datasets.load(name, data_folder)
    norms = np.sqrt(data.X.multiply(data.X).sum(axis=1))
    np.testing.assert_allclose(norms, 1, atol=1e-4)


def test_bloodcells_groups_are_source_pictures(data_folder):
    data = datasets.load("bloodcells", data_folder)
    assert not set(data.groups) & set(data.groups_test)
    for y, groups, counts in (
        (data.y, data.groups, (27, 159)),
        (data.y_test, data.groups_test, (6, 48)),
    ):
        sources = [set(groups[y == label]) for label in (-1, 1)]
        assert tuple(map(len, sources)) == counts
        assert not sources[0] & sources[1]
    assert 0 <= data.X.min() < 0.1 < 0.9 < data.X.max() <= 1


def test_olivetti_faces_are_upright(data_folder):
    images = datasets.load("olivetti", data_folder).X.reshape(400, 64, 64)
    # faces are nearly symmetric between left and right, not between top and bottom
    across = np.abs(images - images[:, :, ::-1]).mean()
    assert across < 0.7 * np.abs(images - images[:, ::-1]).mean()


def test_bloodcells_images(monkeypatch, tmp_path, cache):
    cv2 = pytest.importorskip("cv2")
    known = datasets.info("bloodcells-images")
    small = tuple(replace(file, sha256="") for file in known.files)
    monkeypatch.setitem(datasets._SETS, known.name, replace(known, files=small))
    names = {
        "TRAIN": ["TRAIN/LYMPHOCYTE/_0_17", "TRAIN/LYMPHOCYTE/_0_18", "TRAIN/NEUTROPHIL/_0_9"],
        "TEST": ["TEST/LYMPHOCYTE/_0_1", "TEST/NEUTROPHIL/_3_2", "TEST_SIMPLE/NEUTROPHIL/_1_5"],
    }
    for file, part in zip(small, names.values(), strict=True):
        path = tmp_path / file.path
        path.parent.mkdir(exist_ok=True)
        with tarfile.open(path, "w:xz") as archive:
            for k, name in enumerate(part):
                picture = np.full((240, 320, 3), 220, np.uint8)
                picture[100:140, 150 + 10 * k : 190 + 10 * k] = 90
                content = cv2.imencode(".jpeg", picture)[1].tobytes()
                member = tarfile.TarInfo(f"{name}.jpeg")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    data = datasets.load("bloodcells-images", tmp_path)
    assert data.X.shape == (3, 14400)
    assert data.X_test.shape == (2, 14400)
    assert data.y.tolist() == [-1, -1, 1]
    assert data.y_test.tolist() == [-1, 1]
    assert len(set(data.groups)) == 2
    assert not set(data.groups) & set(data.groups_test)
    assert data.X.max() <= 1.0
    assert data.X.reshape(3, 120, 120)[:, 60, 60].min() > data.X[:, 0].max()  # the nucleus
    assert kept(cache) == ["bloodcells/TEST_crops.npz", "bloodcells/TRAIN_crops.npz"]
    monkeypatch.setattr("zerogap.transforms.bloodcells._crop_all", None)  # now from the cache
    assert same(datasets.load("bloodcells-images", tmp_path).X, data.X)


def test_vert_from_the_users_own_file(monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    genes, labels = rng.random((4654, 184)).round(2), rng.choice([-1, 1], 184)
    lines = [f"g{k}\t" + "\t".join(map(str, row)) for k, row in enumerate(genes)]
    (tmp_path / "xtrain.txt").write_text("\n".join(lines))
    (tmp_path / "ytrain.txt").write_text("\n".join(map(str, labels)))
    known = datasets.info("vert")
    unchecked = tuple(replace(file, sha256="") for file in known.files)
    monkeypatch.setitem(datasets._SETS, "vert", replace(known, files=unchecked))
    data = datasets.load("vert", tmp_path)
    assert same(data.X, genes.T)
    assert same(data.y, labels)
    assert data.feature_names[:2] == ("g0", "g1")
    (tmp_path / "xtrain.txt").write_text("\n".join(lines[1:]))
    with pytest.raises(ValueError, match=r"xtrain.txt is damaged .* must hold 4654 lines"):
        datasets.load("vert", tmp_path)


# Splits and scales


def test_split_keeps_the_share_of_every_class():
    y = np.repeat([-1, 1], [900, 100])
    data = datasets.Dataset(datasets.info("simulated"), np.arange(1000.0)[:, None], y)
    parts = data.split(test_size=0.2, random_state=3)
    assert [(part == 1).sum() for part in (parts.y, parts.y_test)] == [80, 20]
    assert sorted([*parts.X[:, 0], *parts.X_test[:, 0]]) == list(range(1000))
    assert same(parts.X_test, data.split(test_size=0.2, random_state=3).X_test)
    assert not same(parts.X_test, data.split(test_size=0.2, random_state=4).X_test)
    assert parts.split() is parts
    assert parts.groups is None


def test_split_keeps_groups_together():
    X, groups = np.arange(300.0)[:, None], np.arange(300) // 3
    info = datasets.info("simulated")
    parts = datasets.Dataset(info, X, np.arange(300) % 2, groups=groups).split(test_size=0.1)
    assert len(parts.X_test) == 30
    assert not set(parts.groups) & set(parts.groups_test)
    assert same(parts.groups_test, parts.X_test[:, 0].astype(int) // 3)


def test_scales_come_from_the_training_rows_alone():
    data = datasets.load("simulated").split()
    wild = replace(data, X_test=1000 * data.X_test)
    scaled = wild.standardise()
    assert same(scaled.X, data.standardise().X)
    np.testing.assert_allclose(scaled.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.X.std(axis=0), 1)
    np.testing.assert_allclose(
        scaled.X_test, (wild.X_test - data.X.mean(axis=0)) / data.X.std(axis=0)
    )
    text = datasets.load("text").standardise()
    assert issparse(text.X)
    assert text.X_test is None


def test_repr_and_texts():
    data = datasets.load("simulated").split(0.5)
    assert repr(data) == "<Dataset simulated: 500 x 10, 2 classes, 500 test rows>"
    about = datasets.info("simulated")
    for field in ("name", "description", "licence", "citation", "notes"):
        assert getattr(data, field) == getattr(about, field)


# Simulated data


@pytest.mark.parametrize("name", SIMULATED)
def test_simulated_sets(name):
    data, about = datasets.load(name), datasets.info(name)
    assert data.X.shape == (about.n_samples, about.n_features)
    assert set(data.y) == {-1.0, 1.0}
    make = getattr(datasets, f"make_{name.replace('-', '_')}")
    first, again, other = (make(random_state=seed) for seed in (0, 0, 1))
    assert same(data.X, first.X)
    assert same(first.X, again.X)
    assert same(first.y, again.y)
    assert not same(first.y, other.y)
    rng = np.random.default_rng(0)
    assert same(make(random_state=rng).X, first.X)
    assert not same(make(random_state=rng).y, first.y)  # the generator has moved on


def test_two_gaussians_have_the_error_that_is_known():
    for d in (1, 2, 7):
        X, y = datasets.make_two_gaussians(40_000, d, distance=2.0, random_state=0)
        assert y.sum() == 0
        best = np.sign(X.sum(axis=1))
        phi = 0.5 * math.erfc(1 / math.sqrt(2))
        assert np.mean(best != y) == pytest.approx(phi, abs=0.006)
        assert X[y > 0].std(axis=0) == pytest.approx(1, abs=0.03)


def test_two_discs_are_filled_evenly():
    X, y = datasets.make_two_discs(20_000, radius=2.0, distance=5.0, random_state=0)
    from_centre = np.hypot(X[:, 0] - 2.5 * y, X[:, 1])
    assert from_centre.max() <= 2.0
    for share in (0.25, 0.5, 0.75):
        assert np.mean(from_centre <= 2 * math.sqrt(share)) == pytest.approx(share, abs=0.015)
    assert (X[:, 0] * y > 0).all()
    near = datasets.make_two_discs(2000, radius=2.0, distance=1.0, random_state=0)
    assert (near.X[:, 0] * near.y < 0).any()


@pytest.mark.parametrize("cells", [1, 2, 3, 8])
def test_checkerboard_colours(cells):
    X, y = datasets.make_checkerboard(5000, cells=cells, random_state=0)
    assert (X >= 0).all()
    assert (X < 1).all()
    column, row = (cells * X).astype(int).T
    assert same(y, np.where((column + row) % 2 == 0, 1.0, -1.0))
    neighbours = {(a, b): set(y[(column == a) & (row == b)]) for a in range(cells) for b in (0,)}
    assert all(len(colours) == 1 for colours in neighbours.values())


def test_text_follows_zipf():
    X, y, beta = datasets.make_text(5000, 1000, words=50.0, noise=0.0, random_state=0)
    assert X.format == "csr"
    assert X.has_sorted_indices
    np.testing.assert_allclose(np.sqrt(X.multiply(X).sum(axis=1)), 1)
    assert same(y, np.where(X @ beta >= 0, 1.0, -1.0))
    # the chance that a text of about 50 words has the k-th one
    share = 1 / np.arange(1, 1001) / np.sum(1 / np.arange(1, 1001))
    documents = np.diff(X.tocsc().indptr) / 5000
    expected = 1 - (1 - share) * np.exp(-49 * share)  # one word, and a Poisson number of others
    np.testing.assert_allclose(documents[:50], expected[:50], atol=0.03)
    assert np.min(np.diff(X.indptr)) >= 1


def test_ill_conditioned_columns():
    X, y, beta = datasets.make_ill_conditioned(300, 20, condition=1e5, noise=0.0, random_state=0)
    values = np.linalg.svd(X, compute_uv=False)
    assert values[0] == pytest.approx(math.sqrt(300))
    np.testing.assert_allclose(values[1:] / values[:-1], 1e-5 ** (1 / 19), rtol=1e-6)
    assert np.mean((X @ beta) ** 2) == pytest.approx(1.0)
    assert same(y, np.where(X @ beta >= 0, 1.0, -1.0))
    with pytest.raises(ValueError, match="n_samples must be >= n_features, got 3 < 4"):
        datasets.make_ill_conditioned(3, 4)


# Files


CONTENT = b"0,1,2\n" * 1000


def data_file(url="", path="small/table.data.gz", content=CONTENT):
    return DataFile(path, hashlib.sha256(content).hexdigest(), 100, url)


class Server:
    """A web server on this machine that serves `pages` and counts requests."""

    def __init__(self):
        self.pages, self.asked, self.failures, self.missing = {}, [], 0, 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                outer.failures -= 1
                if outer.failures >= 0:
                    self.send_error(503)
                elif self.path not in outer.pages:
                    self.send_error(404)
                else:
                    page = outer.pages[self.path]
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(page) + outer.missing))
                    self.end_headers()
                    self.wfile.write(page)

            def log_message(self, *parts):
                pass

        self.web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.web.server_port}"
        self.thread = Thread(target=self.web.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self):
        self.web.shutdown()
        self.web.server_close()
        self.thread.join()


@pytest.fixture
def server(monkeypatch):
    pytest.importorskip("pooch")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Server()
    yield server
    server.close()


def zipped(name, content):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("other.txt", "something else")
        archive.writestr(name, content)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("page", "name"),
    [
        (gzip.compress(CONTENT, 1, mtime=0), "table.data.gz"),
        (gzip.compress(CONTENT, 9, mtime=0), "table.data.gz"),  # another wrapping of the same data
        (bz2.compress(CONTENT), "table.data.gz"),
        (CONTENT, "table.data"),
        (zipped("table.data", CONTENT), "table.data"),
    ],
    ids=["gzip", "gzip-9", "bzip2", "plain", "zip"],
)
def test_download(page, name, server, cache, capfd):
    server.pages["/table"] = page
    file = data_file(f"{server.url}/table")
    assert files.read(file) == CONTENT
    assert kept(cache) == [f"small/{name}"]
    assert files.find(file) == cache / "small" / name
    assert files.read(file) == CONTENT
    assert server.asked == ["/table"]  # the second time from the cache
    assert capfd.readouterr() == ("", "")  # no bar where there is no terminal


def test_download_into_a_folder(server, cache, tmp_path):
    server.pages["/table"] = CONTENT
    file = data_file(f"{server.url}/table", path="small/table.csv")
    assert files.read(file, tmp_path / "mine") == CONTENT
    assert kept(tmp_path / "mine") == ["small/table.csv"]
    assert not cache.exists()


def test_another_file_is_not_kept(server, cache):
    server.pages["/table"] = b"<html>moved</html>"
    file = data_file(f"{server.url}/table")
    found = hashlib.sha256(b"<html>moved</html>").hexdigest()
    with pytest.raises(ValueError, match=rf"serves another file.* {found}, not {file.sha256}"):
        files.read(file)
    assert kept(cache) == []


def test_broken_transfer_is_tried_again_and_leaves_nothing(server, cache):
    server.pages["/table"], server.missing = gzip.compress(CONTENT), 10
    file = data_file(f"{server.url}/table")
    with pytest.raises(FileNotFoundError, match=r"table.data.gz is missing .*no connection to 127"):
        files.read(file)
    assert len(server.asked) == files.DOWNLOAD_ATTEMPTS
    assert kept(cache) == []


def test_busy_server_is_asked_again(server):
    server.pages["/table"], server.failures = gzip.compress(CONTENT), 2
    assert files.read(data_file(f"{server.url}/table")) == CONTENT
    assert len(server.asked) == 3


def test_refusal_is_final(server):
    with pytest.raises(FileNotFoundError, match=r"127.0.0.1:\d+ answered 404 Not Found"):
        files.read(data_file(f"{server.url}/nothing"))
    assert server.asked == ["/nothing"]


def test_interrupted_download_leaves_nothing(server, cache, monkeypatch):
    server.pages["/table"] = gzip.compress(CONTENT)

    def interrupt(bar, n):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.Bar, "update", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.read(data_file(f"{server.url}/table"))
    assert kept(cache) == []


def test_no_network(server, cache, monkeypatch):
    file = data_file(f"{server.url}/table")
    server.web.server_close()  # nobody answers at this address now
    with pytest.raises(FileNotFoundError) as caught:
        files.read(file)
    message = str(caught.value)
    for part in ("table.data.gz", str(cache / "small"), "ZEROGAP_DATA", file.sha256):
        assert part in message
    assert "\n" not in message
    monkeypatch.setenv("ZEROGAP_DATA", "/data")
    with pytest.raises(FileNotFoundError, match="put it into /data/small \\(sha256"):
        files.read(file)


def test_without_pooch_or_source(monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"table.data.gz is missing .*no public source"):
        files.read(data_file())
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(FileNotFoundError, match=r"pip install 'zerogap\[lab\]'.*put it into"):
        files.read(data_file("http://127.0.0.1:9/table"))


def test_unwritable_cache(server, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(OSError, match=r"cannot write into .*file/zerogap/small.*XDG_CACHE_HOME"):
        files.read(data_file(f"{server.url}/table"))
    assert server.asked == []


def test_places(monkeypatch, tmp_path, cache):
    file = data_file()
    packed, plain = gzip.compress(CONTENT), CONTENT
    for place, content in (
        (cache / "small/table.data.gz", packed),
        (tmp_path / "data/table.data", plain),
        (tmp_path / "data/table.data.gz", packed),
        (tmp_path / "data/small/table.data.gz", packed),
    ):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        monkeypatch.setenv("ZEROGAP_DATA", str(tmp_path / "data"))
        assert files.find(file) == place  # each goes before those above
        assert files.read(file) == CONTENT
    assert files.find(file, tmp_path / "elsewhere") is None
    monkeypatch.delenv("ZEROGAP_DATA")
    assert files.find(file) == cache / "small/table.data.gz"


@pytest.mark.parametrize("packed", [gzip.compress(CONTENT, mtime=0), bz2.compress(CONTENT)])
def test_damaged_files(packed, tmp_path):
    file = data_file()
    place = tmp_path / file.name
    for content in (packed[:-9], packed[:40] + b"\0\0\0\0" + packed[44:], CONTENT[:-1], b""):
        place.write_bytes(content)
        found = hashlib.sha256(content).hexdigest()
        with pytest.raises(ValueError, match=rf"damaged .*sha256 is {found}, not {file.sha256}"):
            files.read(file, tmp_path)
    assert kept(tmp_path) == [file.name]


def test_cache_folder(monkeypatch, tmp_path):
    assert files.cache_folder() == tmp_path / "cache" / "zerogap"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(files.Path, "home", lambda: tmp_path)
    for platform, folder in (("linux", ".cache"), ("darwin", "Library/Caches")):
        monkeypatch.setattr(sys, "platform", platform)
        assert files.cache_folder() == tmp_path / folder / "zerogap"


def test_users_without_a_home_are_told_where_to_put_data(monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(files.Path, "home", nowhere)
    with pytest.raises(OSError, match="XDG_CACHE_HOME sets that of the cache"):
        files.make_folder(files.cache_folder() / "data.npz")
    assert not (files.cache_folder() / "data.npz").is_file()


def test_bar(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    bar = files.Bar("downloading x", total=200)
    for _ in range(4):
        bar.update(50)
    bar.close()
    bar.close()
    shown = "".join(f"\rdownloading x {percent:3d} %" for percent in (25, 50, 75, 100))
    assert capsys.readouterr().err == shown + "\n"


# The command


@pytest.fixture
def command():
    typer = pytest.importorskip("typer")
    from typer.testing import CliRunner

    from zerogap.cli import data

    app = typer.Typer()
    app.callback()(lambda: None)
    data.register(app)

    def call(line):
        outcome = CliRunner().invoke(app, ["data", *line.split()])
        if outcome.exception and not isinstance(outcome.exception, SystemExit):
            raise outcome.exception
        return outcome

    return call


@pytest.fixture
def small_set(monkeypatch, server):
    """The name of a set of two files on the server."""
    server.pages |= {"/a": gzip.compress(CONTENT), "/b": b"1\n"}
    about = replace(
        datasets.info("skin"),
        name="small",
        files=(data_file(f"{server.url}/a"), data_file(f"{server.url}/b", "small/b", b"1\n")),
    )
    monkeypatch.setattr(datasets, "_SETS", {"small": about, **datasets._SETS})
    return about


def test_data_list(command, small_set):
    outcome = command("list")
    assert outcome.exit_code == 0
    lines = outcome.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["name", *datasets.names()]
    assert re.search(r"^small +245057 +- +3 +2 +0.2 kB  no, can be fetched$", outcome.stdout, re.M)
    assert re.search(r"^rcv1 .* 9.7 MB  no$", outcome.stdout, re.M)
    assert re.search(r"^text .* -  simulated$", outcome.stdout, re.M)
    assert "\x1b" not in outcome.stdout
    listed = json.loads(command("list --json").stdout)["datasets"]
    assert [entry["name"] for entry in listed] == datasets.names()
    assert listed[0] == {
        "name": "small",
        "n_samples": 245057,
        "n_test": 0,
        "n_features": 3,
        "n_classes": 2,
        "bytes": 200,
        "here": False,
        "downloadable": True,
    }


def test_data_get_and_info(command, small_set, cache):
    before = json.loads(command("info small --json").stdout)
    assert [file["found"] for file in before["files"]] == [None, None]
    places = [cache / "small/table.data.gz", cache / "small/b"]
    outcome = command("get small")
    assert outcome.exit_code == 0
    assert outcome.stdout == "".join(f"downloaded  {place}\n" for place in places)
    assert command("get small").stdout == "".join(f"checked     {place}\n" for place in places)
    after = json.loads(command("info small --json").stdout)
    assert [file["found"] for file in after["files"]] == [str(place) for place in places]
    assert after["here"] is True
    text = command("info small").stdout
    for part in (small_set.licence, small_set.citation, small_set.files[0].sha256, str(places[1])):
        assert part in text
    assert " ".join(small_set.notes.split()[:5]) in text
    assert max(map(len, text.splitlines())) <= 110 + len(str(cache))


def test_data_get_fails_in_one_line(command, small_set, cache):
    (cache / "small").mkdir(parents=True)
    (cache / "small/b").write_bytes(b"2\n")
    outcome = command("get small")
    assert outcome.exit_code == 1
    assert outcome.stderr.count("\n") == 1
    assert outcome.stderr.startswith(f"zerogap data get: {cache / 'small/b'} is damaged")
    outcome = command("get rcv1")
    assert (outcome.exit_code, outcome.stdout) == (1, "")
    assert outcome.stderr.count("\n") == 1
    for line in ("get nothing", "info nothing"):
        outcome = command(line)
        assert (outcome.exit_code, outcome.stdout) == (2, "")
        assert "unknown data set 'nothing'" in outcome.stderr


def test_data_without_a_command_shows_help(command):
    outcome = command("")
    assert outcome.exit_code == 0
    assert all(word in outcome.stdout for word in ("list", "info", "get"))
    assert command("get checkerboard").stdout == "checkerboard is simulated: nothing to fetch\n"


def stored_values(X):
    return X.data if issparse(X) else X


def test_raw_tables_are_finite_and_have_every_kind_of_column_and_target():
    kinds, targets, types = set(), set(), set()
    for seed in range(200):
        X, y, columns, target = datasets.make_raw_table(random_state=seed)
        assert X.shape == (len(y), len(columns))
        assert 20 <= X.shape[0] <= 5000
        assert 1 <= X.shape[1] <= 60
        for values in (stored_values(X), y):
            assert np.isfinite(values).all()
            assert np.abs(values).max(initial=0) < 1e15
        classes = {"binary": (2, 2), "multiclass": (3, 10), "number": (1, 5000)}
        low, high = classes[target]
        assert low <= len(np.unique(y)) <= high
        kinds |= {name.rpartition("_")[0] for name in columns}
        targets.add(target)
        types.add((X.dtype.name, issparse(X)))
    assert kinds == set(raw_tables.COLUMN_KINDS)
    assert targets == set(raw_tables.TARGET_KINDS)
    assert types == {(kind, s) for kind in ("float64", "float32", "int64") for s in (False, True)}


def test_raw_tables_follow_from_their_seed():
    for seed in range(20):
        first, second = (datasets.make_raw_table(random_state=seed) for _ in range(2))
        assert same(first.X, second.X)
        assert same(first.y, second.y)
        assert first[2:] == second[2:]


def test_raw_tables_of_a_given_shape():
    for seed in range(50):
        table = datasets.make_raw_table(2 + seed, 5, target="number", random_state=seed)
        assert table.X.shape == (2 + seed, 5)
        assert table.target == "number"
    with pytest.raises(ValueError, match="target must be one of binary, multiclass, number"):
        datasets.make_raw_table(target="numbers")
    with pytest.raises(ValueError, match="n_samples must be at least 2, got 1"):
        datasets.make_raw_table(1)
    with pytest.raises(ValueError, match="n_features must be at least 1, got 0"):
        datasets.make_raw_table(n_features=0)
