"""Model files come back to the bit, run no code, and are never half written."""

import json
import os
import pickle
import struct
import subprocess
import sys
import textwrap
import time
import tracemalloc
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

import zerogap as zg
from problems import make_data
from zerogap.io.container import MAJOR, MINOR
from zerogap.losses import Hinge
from zerogap.model_io import ModelFileError, load, loads, read, recertify, save, to_onnx
from zerogap.model_io.stores import recertify_store
from zerogap.readers import Category, Encoder, Number
from zerogap.solvers import BlockSDCA
from zerogap.store import Store, write_store

rng = np.random.default_rng(0)
X = rng.standard_normal((120, 4))
Y2 = np.where(X[:, 0] + 0.5 * rng.standard_normal(120) > 0.2, 1, 0)
Y3 = np.argmax(X[:, :3] + 0.5 * rng.standard_normal((120, 3)), axis=1)
YR = X @ [1.0, -2.0, 0.0, 3.0] + rng.standard_normal(120)
NAMES = np.array(["ant", "bee", "cicada"])
SAMPLES = Path(__file__).parent / "samples"

MODELS = [
    (zg.LinearClassifier(random_state=0), Y2),
    (zg.LinearClassifier("logistic", lam=0.01, random_state=3), NAMES[Y3]),
    (zg.LinearClassifier("softmax", random_state=0, class_weight="balanced"), Y3),
    (zg.LinearClassifier("multiclass-hinge", fit_intercept=False, random_state=0), Y2),
    (zg.LinearClassifier(zg.SmoothHinge(gamma=0.25), class_weight={0: 2.0, 1: 0.5}), Y2),
    (
        zg.LinearClassifier(
            solver=zg.SDCA("cyclic", output="average"), max_seconds=np.inf, random_state=0
        ),
        Y3,
    ),
    (zg.LinearRegressor(zg.Quantile(q=0.75), l1_ratio=0.25, random_state=0), YR),
    (zg.LinearRegressor(lam=np.float64(0.5), max_epochs=np.int64(50), random_state=0), YR),
]
MODEL_NAMES = [f"{type(m).__name__}-{m.loss}" for m, _ in MODELS]


def written(model, tmp_path, **options):
    save(model, tmp_path / "model.zg", **options)
    return tmp_path / "model.zg"


@pytest.fixture
def model():
    return zg.LinearClassifier("logistic", random_state=0).fit(X, NAMES[Y3])


@pytest.fixture
def content(model, tmp_path):
    return written(model, tmp_path).read_bytes()


def take_apart(content):
    """Header and the bytes of the arrays, by the documented layout."""
    length = struct.unpack_from("<I", content, 12)[0]
    return json.loads(content[16 : 16 + length]), content[16 + length : -4]


def put_together(header, arrays, version=(MAJOR, MINOR)):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = b"\x89ZGP\r\n\x1a\n" + struct.pack("<HHI", *version, len(text)) + text + arrays
    return body + struct.pack("<I", zlib.crc32(body))


# round trips


@pytest.mark.parametrize(("model", "y"), MODELS, ids=MODEL_NAMES)
def test_round_trip_is_exact(model, y, tmp_path):
    model = clone(model).fit(X, y)
    same = load(written(model, tmp_path))
    assert type(same) is type(model)
    assert repr(same.get_params()) == repr(
        {k: v.item() if isinstance(v, np.generic) else v for k, v in model.get_params().items()}
    )
    for name in ("coef_", "intercept_", "dual_coef_", "classes_"):
        np.testing.assert_array_equal(getattr(same, name, 0), getattr(model, name, 0))
        assert np.asarray(getattr(same, name, 0)).dtype == np.asarray(getattr(model, name, 0)).dtype
    assert same.certificate_ == model.certificate_
    assert (same.n_iter_, same.fingerprint_) == (model.n_iter_, model.fingerprint_)
    methods = ("predict", "decision_function", "predict_proba")
    for method in [m for m in methods if hasattr(model, m)]:
        np.testing.assert_array_equal(getattr(same, method)(X), getattr(model, method)(X))
    assert not hasattr(same, "history_")
    seed = {"random_state": 0}
    again = clone(same).set_params(**seed).fit(X, y)
    np.testing.assert_array_equal(again.coef_, model.set_params(**seed).fit(X, y).coef_)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-3, 7], dtype=np.int8),
        np.array([0, 2**63], dtype=np.uint64),
        np.array([-1.0, 3.0], dtype=np.float32),
        np.array([False, True]),
        np.array(["", "naïve 蜂\n"]),
        np.array(["a", "longer"], dtype=">U9"),
        np.array(["ja", "nein"], dtype=object),
    ],
    ids=lambda a: a.dtype.str,
)
def test_class_labels_of_every_kind(labels, tmp_path):
    model = zg.LinearClassifier(random_state=0).fit(X, labels[Y2])
    same = load(written(model, tmp_path))
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert same.classes_.dtype == model.classes_.dtype.newbyteorder("=")
    assert [type(label) for label in same.classes_] == [type(label) for label in model.classes_]


def test_feature_names_and_encoder_are_kept(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b=x", "b=y", "ß"])
    model = zg.LinearClassifier(random_state=0).fit(frame, Y2)
    columns = (Number("a"), Category("b", ("x", "y")), Number("ß"))
    encoder = Encoder(4, columns, target="y", scale=np.array([1.0, 2.0, 0.1, 1e-300]))
    file = read(written(model, tmp_path, encoder=encoder))
    np.testing.assert_array_equal(file.model.feature_names_in_, frame.columns)
    np.testing.assert_array_equal(file.model.predict(frame), model.predict(frame))
    assert file.encoder.to_json() == encoder.to_json()
    assert file.version == zg.__version__


def test_what_cannot_be_in_a_file_becomes_none(tmp_path):
    generator, seen = np.random.default_rng(0), []
    model = zg.LinearClassifier(random_state=generator, callback=seen.append).fit(X, Y2)
    same = load(written(model, tmp_path))
    assert same.random_state is None
    assert same.callback is None


def test_dual_variables_are_kept_if_they_are_small(model, tmp_path, monkeypatch):
    assert read(written(model, tmp_path)).has_dual
    monkeypatch.setattr("zerogap.model_io.files._BYTES_KEPT_UNASKED", model.dual_coef_.nbytes - 1)
    assert not read(written(model, tmp_path)).has_dual
    assert read(written(model, tmp_path, keep_dual=True)).has_dual
    bare = load(written(model, tmp_path, keep_dual=False))
    assert bare.dual_coef_.shape == (3, 0)
    assert bare.set_params(warm_start=True).fit(X, NAMES[Y3]).n_iter_ < model.n_iter_
    bare = load(written(model, tmp_path, keep_dual=False))
    with pytest.raises(ValueError, match="without duals"):
        save(bare, tmp_path / "again.zg", keep_dual=True)
    assert not (tmp_path / "again.zg").exists()


@dataclass(frozen=True)
class Own(Hinge):
    """A loss of a user."""


def test_what_cannot_be_rebuilt_is_refused(tmp_path):
    path = tmp_path / "model.zg"
    with pytest.raises(
        ValueError, match=r"loss=Own\(\) cannot be saved: it is not part of zerogap"
    ):
        save(zg.LinearClassifier(Own(), random_state=0).fit(X, Y2), path)
    with pytest.raises(ValueError, match="LinearClassifier and LinearRegressor can be saved"):
        save(Ridge().fit(X, YR), path)
    with pytest.raises(NotFittedError):
        save(zg.LinearClassifier(), path)
    assert not path.exists()


# files that are not models


@pytest.mark.posix
def test_missing_files_and_strange_paths_are_named(tmp_path):
    for path in (tmp_path / "none.zg", tmp_path):
        with pytest.raises(OSError, match=path.name):
            load(path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="pipe"):
        load(tmp_path / "pipe")


class Evil:
    def __reduce__(self):
        return os.mkdir, ("evil was here",)


def test_pickles_and_archives_are_never_opened(tmp_path, monkeypatch, model):
    monkeypatch.chdir(tmp_path)
    Path("model.pkl").write_bytes(pickle.dumps(Evil()))
    np.savez("objects.npz", a=np.array([Evil()], dtype=object))
    with zipfile.ZipFile("slip.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../outside", bytes(10_000_000))
    for name in ("model.pkl", "objects.npz", "slip.zip"):
        with pytest.raises(ModelFileError, match=rf"^{name} is not a readable model: it is not a"):
            load(name)
    # a pickle behind a valid header has no place to be
    header, arrays = take_apart(written(model, tmp_path).read_bytes())
    with pytest.raises(ModelFileError, match="bytes, but"):
        loads(put_together(header, arrays + pickle.dumps(Evil())))
    assert not Path("evil was here").exists()


def test_every_damaged_byte_and_every_cut_is_noticed(content):
    places = range(len(content)) if len(content) < 6000 else range(0, len(content), 3)
    for place in places:
        for damaged in (
            content[:place],
            content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :],
        ):
            with pytest.raises(ModelFileError) as caught:
                loads(damaged)
            assert "\n" not in str(caught.value)


HOSTILE = {
    "declared size": (lambda h: h["arrays"][0].__setitem__(2, [10**9, 1]), "arrays take"),
    "size over 64 bits": (lambda h: h["arrays"][0].__setitem__(2, [2**39, 2**39]), "arrays take"),
    "negative size": (lambda h: h["arrays"][0].__setitem__(2, [-1, 4]), "impossible array"),
    "fractional size": (lambda h: h["arrays"][0].__setitem__(2, [3.0, 4]), "impossible array"),
    "empty but wide": (lambda h: h["arrays"].append(["x", "<U9", [0, 10**15]]), "impossible"),
    "objects": (lambda h: h["arrays"][0].__setitem__(1, "|O"), "impossible array"),
    "structure": (lambda h: h["arrays"][0].__setitem__(1, "<f8,<f8"), "impossible array"),
    "array twice": (lambda h: h["arrays"].append(["coef", "<f8", [0]]), "occurs twice"),
    "no arrays": (lambda h: h.pop("arrays"), "does not declare"),
    "class": (lambda h: h.update({"class": "os.system"}), "class 'os.system' is unknown"),
    "kind": (lambda h: h.update(kind="checkpoint"), "it is a checkpoint, not a model"),
    "loss": (lambda h: h["params"].update(loss="zero-one"), "unknown loss 'zero-one'"),
    "loss object": (
        lambda h: h["params"].update(loss={"loss": "huber", "params": {"__class__": 1}}),
        "no loss that",
    ),
    "impossible loss": (
        lambda h: h["params"].update(loss={"loss": "smooth-hinge", "params": {"gamma": -1}}),
        "no loss that",
    ),
    "solver": (
        lambda h: h["params"].update(solver={"solver": "builtins.exec", "params": {}}),
        "no solver that",
    ),
    "odd parameter": (lambda h: h["params"].update(tol=[1, [2]]), "does not know"),
    "odd number": (lambda h: h["params"].update(tol={"float": []}), "does not know"),
    "no certificate": (lambda h: h.pop("certificate"), "certificate is missing"),
    "certificate": (lambda h: h["certificate"].update(gap="small"), "gap is missing or wrong"),
    "parts": (lambda h: h["certificate"].update(parts=[1]), "parts of a certificate"),
    "n_iter": (lambda h: h.update(n_iter=True), "n_iter is missing or wrong"),
    "feature names": (lambda h: h.update(feature_names=["a"]), "feature_names must be 4"),
    "encoder": (lambda h: h.update(encoder={"n_features": 4}), "encoder is no encoder"),
    "encoder size": (lambda h: h.update(encoder=Encoder(5).to_json()), "encoder has 5 features"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_headers_are_refused(case, content):
    header, arrays = take_apart(content)
    change, message = HOSTILE[case]
    change(header)
    with pytest.raises(ModelFileError, match=message):
        loads(put_together(header, arrays))


def test_F5_a_header_of_many_empty_arrays_is_refused_at_once(content):
    header, _ = take_apart(content)
    declared = [[f"a{k}", "<f8", [0]] for k in range(300_000)]
    with pytest.raises(ModelFileError, match="declares 300000 arrays, 1000 at most"):
        loads(put_together({**header, "arrays": declared}, b""))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"a":"' + b'\\"' * 300_000, "Unterminated string"),
        (b"[" * 3_000_000, "nested more than 16 deep"),
        (b"{" + b" " * (1 << 26), "too long for arrays of 0 bytes"),
    ],
    ids=["an open string", "brackets", "spaces"],
)
def test_F5_headers_are_refused_at_once(text, message, content):
    whole = content[:12] + struct.pack("<I", len(text)) + text
    began = time.process_time()
    with pytest.raises(ModelFileError, match=message):
        loads(whole + struct.pack("<I", zlib.crc32(whole)))
    assert time.process_time() - began < 1.0


def test_F4_a_file_names_no_place_to_write_to(content, tmp_path):
    header, arrays = take_apart(content)
    header["params"] |= {"checkpoint": str(tmp_path / "victim"), "callback": "print"}
    model = loads(put_together(header, arrays)).model
    assert (model.checkpoint, model.callback) == (None, None)
    before = sorted(tmp_path.iterdir())
    model.fit(X, NAMES[Y3])
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[" * 100_000, "nested"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested"),
        (b'{"kind": "model", "kind": "model"}', "occurs twice"),
        (b'{"kind": NaN}', "NaN, which is not JSON"),
        (b'{"kind": -Infinity}', "Infinity, which is not JSON"),
        (b'{"kind": 1e999}', "too large"),
        (b'{"kind": ' + b"9" * 5000 + b"}", "has 5000 digits"),
        (b'{"kind": "\xff"}', "not UTF-8"),
        (b"{'kind': 1}", "not JSON"),
        (b'["model"]', "not a JSON object"),
        (b"", "not JSON"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_only_strict_json_is_read(text, message):
    with pytest.raises(ModelFileError, match=message):
        loads(put_together(text, b""))


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("coef", 0, struct.pack("<d", np.nan), "'coef' of finite"),
        ("dual", 8, struct.pack("<d", np.inf), "'dual' of finite"),
        ("classes", 0, "z".encode("utf-32-le"), "classes must be"),
        ("classes", 0, b"\xff\xff\xff\xff", "impossible values"),
    ],
)
def test_impossible_values_are_refused(name, place, value, message, content):
    header, arrays = take_apart(content)
    for other, dtype, shape in header["arrays"]:
        if other == name:
            break
        place += np.dtype(dtype).itemsize * int(np.prod(shape))
    with pytest.raises(ModelFileError, match=message):
        loads(put_together(header, arrays[:place] + value + arrays[place + len(value) :]))


def test_arrays_must_fit_together(content):
    header, arrays = take_apart(content)
    sizes = {name: shape for name, _, shape in header["arrays"]}
    for name, shape in (("coef", [4, 3]), ("coef", [12]), ("dual", [120, 3]), ("dual", [360])):
        changed = json.loads(json.dumps(header))
        next(a for a in changed["arrays"] if a[0] == name)[2] = shape
        assert np.prod(shape) == np.prod(sizes[name])
        with pytest.raises(ModelFileError, match="do not fit together"):
            loads(put_together(changed, arrays))
    header["class"] = "LinearRegressor"
    header["params"]["loss"] = "squared"
    with pytest.raises(ModelFileError, match="do not fit together"):
        loads(put_together(header, arrays))


def test_mutations_behind_a_valid_checksum_raise_one_error_and_allocate_little(content):
    """The loader itself, not the checksum, has to stand random changes."""
    random = np.random.default_rng(1)
    pieces = [b'"', b"[", b"{", b"}", b"null", b"-1", b"1e9", b"true", b'"float"', b",", b"\x00"]
    outcomes = {"read": 0, "refused": 0}
    tracemalloc.start()
    for _ in range(1500):
        body = bytearray(content[:-4])
        for _ in range(random.integers(1, 4)):
            place = random.integers(8, len(body))
            piece = (
                pieces[random.integers(len(pieces))] if random.random() < 0.7 else random.bytes(2)
            )
            body[place : place + random.integers(0, 4)] = piece
        body[12:16] = struct.pack("<I", len(body) - len(take_apart(content)[1]) - 16)
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        try:
            loads(bytes(body) + struct.pack("<I", zlib.crc32(body)))
            outcomes["read"] += 1
        except ModelFileError:
            outcomes["refused"] += 1
        assert tracemalloc.get_traced_memory()[1] - before < 2 * len(body) + 1_000_000
    tracemalloc.stop()
    assert min(outcomes.values()) > 50


# versions


def test_a_newer_major_version_is_refused_with_advice(content):
    with pytest.raises(ModelFileError, match=rf"format {MAJOR + 1}\.0.*pip install -U zerogap"):
        loads(put_together(b"something new", take_apart(content)[1], (MAJOR + 1, 0)))


def test_a_newer_minor_version_may_say_more(content, model):
    header, arrays = take_apart(content)
    header["news"] = {"a": [1, 2]}
    header["params"]["momentum"] = 0.9
    header["certificate"]["colour"] = "green"
    header["arrays"].append(["more", "<i4", [2]])
    same = loads(put_together(header, arrays + bytes(8), (MAJOR, MINOR + 7))).model
    np.testing.assert_array_equal(same.predict_proba(X), model.predict_proba(X))
    assert same.certificate_ == model.certificate_


def test_files_of_all_earlier_formats_load():
    """One pair of samples per format, written by the version that introduced it."""
    formats = sorted({path.stem.split("-")[1] for path in SAMPLES.glob("*.zg")})
    assert formats == ["1.0"]
    A = np.linspace(-1.0, 1.0, 12).reshape(3, 4)
    for version in formats:
        file = read(SAMPLES / f"classifier-{version}.zg")
        assert file.model.predict(A).tolist() == ["cicada", "cicada", "bee"]
        assert file.encoder.feature_names == ("a", "b", "c=x", "c=y")
        assert file.model.certificate_.relative_gap <= 1e-6
        regressor = load(SAMPLES / f"regressor-{version}.zg")
        expected = [-0.9188863483710716, 0.6574213147859578, 2.2337289779429876]
        np.testing.assert_allclose(regressor.predict(A), expected, rtol=1e-9)
        assert regressor.loss == zg.Huber(0.5)
        assert regressor.dual_coef_.shape == (40,)


# writing


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch, model):
    path = written(model, tmp_path)
    before = path.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    for name in ("os.fsync", "os.replace"):
        with monkeypatch.context() as patch:
            patch.setattr(name, full)
            with pytest.raises(OSError, match="No space left"):
                save(zg.LinearRegressor(random_state=0).fit(X, YR), path)
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["model.zg"]


@pytest.mark.posix
def test_links_are_followed_and_devices_left_alone(tmp_path, model):
    target, link = tmp_path / "models" / "target.zg", tmp_path / "link.zg"
    target.parent.mkdir()
    link.symlink_to(target)
    save(model, link)
    assert link.is_symlink()
    assert load(target).lam is None
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        save(model, tmp_path / "pipe")
    with pytest.raises(OSError, match="models"):
        save(model, tmp_path / "models")
    with pytest.raises(FileNotFoundError, match=r"none/model\.zg'$"):
        save(model, tmp_path / "none" / "model.zg")


def test_files_have_ordinary_permissions(tmp_path, model):
    old = os.umask(0o027)
    try:
        assert written(model, tmp_path).stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(old)


WRITERS = textwrap.dedent(
    """
    import os, signal, sys, time
    from zerogap.model_io import load, save

    path, *others = sys.argv[1:]
    models = [load(other) for other in others]
    save(models[0], path)

    def start(times):
        if pid := os.fork():
            return pid
        for k in range(times):
            save(models[k % 2], path)
        os._exit(0)
    """
)
KILLED = """
for k in range(40):
    pid = start(10**9)
    time.sleep(1e-4 * k * k)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    print(load(path).lam)
"""
TOGETHER = """
running = {start(100), start(100)}
while running:
    print(load(path).lam)
    pid, status = os.waitpid(-1, os.WNOHANG)
    assert status == 0
    running.discard(pid)
"""


@pytest.mark.posix
@pytest.mark.parametrize("script", [KILLED, TOGETHER], ids=["kill -9", "two processes"])
def test_there_is_always_a_whole_model(script, tmp_path):
    path, inputs = tmp_path / "model.zg", tmp_path / "inputs"
    inputs.mkdir()
    for lam in (1.0, 2.0):
        model = zg.LinearRegressor(lam=lam, random_state=0).fit(X, YR)
        model.dual_coef_ = np.zeros(100_000)  # a file of several blocks
        save(model, inputs / f"{lam}.zg")
    command = [sys.executable, "-W", "ignore", "-c", WRITERS + script, path, *inputs.iterdir()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"1.0", "2.0"}
    save(load(path), path)
    assert set(os.listdir(tmp_path)) == {"model.zg", "inputs"}, "what was left is cleared away"


# certificates computed again


@pytest.mark.parametrize(("model", "y"), MODELS, ids=MODEL_NAMES)
def test_honest_certificates_are_found_true(model, y, tmp_path):
    weights = np.random.default_rng(2).integers(1, 4, len(y))
    model = clone(model).set_params(max_epochs=5000).fit(X, y, weights)
    with_dual = recertify(read(written(model, tmp_path)), X, y, weights)
    assert (with_dual.claim, with_dual.same_data) == ("true", True)
    assert with_dual.found.epochs == 0, "proved at once"
    assert with_dual.found.gap == pytest.approx(model.certificate_.gap, rel=1e-6, abs=1e-13)
    without = recertify(read(written(model, tmp_path, keep_dual=False)), X, y, weights)
    assert without.claim == "true"
    assert without.found.gap <= model.certificate_.gap * 1.00001


def forged(model, tmp_path, **changes):
    header, arrays = take_apart(written(model, tmp_path).read_bytes())
    header["certificate"].update(changes)
    header["certificate"]["dual"] = header["certificate"]["primal"] - header["certificate"]["gap"]
    return loads(put_together(header, arrays))


def test_forged_certificates_are_found_false(tmp_path):
    model = zg.LinearClassifier(lam=0.01, tol=0.05, random_state=0).fit(X, Y2)
    primal = model.certificate_.primal
    optimum = zg.LinearClassifier(lam=0.01, tol=1e-9, max_epochs=10**5, random_state=0).fit(X, Y2)
    distance = primal - optimum.certificate_.primal
    assert distance > 0
    false = recertify(forged(model, tmp_path, primal=primal * (1 - 1e-6)), X, Y2)
    assert false.claim == "false"
    false = recertify(forged(model, tmp_path, gap=0.5 * distance), X, Y2, effort=10_000)
    assert false.claim == "false"
    assert "is false" in str(false)
    better = recertify(forged(model, tmp_path, gap=1.3 * distance), X, Y2, effort=10_000)
    assert better.claim == "true", "a smaller gap than the stored dual point proves, yet true"


def test_honest_claims_are_proved_without_dual_variables_and_tighter_ones_refuted(tmp_path):
    """However close the stored dual bound is to the optimum: a bound within 10 % is not enough."""
    for seed in range(60):
        model = zg.LinearClassifier("hinge", lam=0.05, tol=1e-2, random_state=seed).fit(X, Y2)
        file = read(written(model, tmp_path, keep_dual=False))
        assert recertify(file, X, Y2, effort=10_000).claim == "true"
        header, arrays = take_apart(written(model, tmp_path, keep_dual=False).read_bytes())
        least = zg.certify(model, X, Y2, effort=10_000).at_least
        header["certificate"]["gap"] = 0.98 * least
        header["certificate"]["dual"] = header["certificate"]["primal"] - 0.98 * least
        assert recertify(loads(put_together(header, arrays)), X, Y2, effort=10_000).claim == "false"


def test_what_cannot_be_proved_is_said(tmp_path):
    model = zg.LinearClassifier("hinge", tol=1e-6, max_epochs=10**4, random_state=0).fit(X, Y2)
    bare = read(written(model, tmp_path, keep_dual=False))
    unproved = recertify(bare, X, Y2, effort=0)
    assert unproved.claim == "unproved"
    assert "keep_dual=True" in str(unproved)


def test_other_data_are_told_from_other_forms_of_the_same(tmp_path):
    model = zg.LinearClassifier(lam=0.05, random_state=0).fit(X, Y2)
    file = read(written(model, tmp_path))
    other = recertify(file, X[::-1] * 1.01, Y2[::-1])
    assert (other.claim, other.same_data) == ("other data", False)
    assert "not the data of the fit" in str(other)
    sparse_form = recertify(file, sparse.csr_matrix(X), Y2)
    assert (sparse_form.claim, sparse_form.same_data) == ("true", False)
    flipped = 1 - Y2
    assert recertify(file, X, flipped).claim == "other data"


IMPOSSIBLE = {
    "negative gap": ({"gap": -1.0}, "gap of -1"),
    "gap that is no number": ({"gap": {"float": "nan"}}, "gap of nan"),
    "dual above primal": ({"dual": 9.0}, "above the primal"),
    "dual that is no number": ({"dual": {"float": "nan"}}, "above the primal"),
    "another gap": ({"gap": 1e-9}, "has a gap of 1e-09, but"),
    "infinite primal": ({"primal": {"float": "inf"}}, "primal value of inf"),
    "negative primal": ({"primal": -1.0, "dual": -1.0, "gap": 0.0}, "primal value of -1"),
    "negative floor": ({"floor": -1.0}, "floor = -1"),
    "infinite floor": ({"floor": {"float": "inf"}}, "floor = inf"),
    "epochs": ({"epochs": -2}, "epochs = -2"),
    "seconds": ({"seconds": {"float": "nan"}}, "seconds = nan"),
    "no parts": ({"parts": []}, "has 0 parts, and the model 3"),
    "other parts": ({"primal": 1.0, "dual": 1.0, "gap": 0.0}, "primal = 1, its parts"),
}


@pytest.mark.parametrize(
    ("case", "place"),
    [(case, "whole") for case in IMPOSSIBLE]
    + [(case, "part") for case in IMPOSSIBLE if "parts" not in case],
)
def test_P4_impossible_certificates_are_refused(case, place, content):
    header, arrays = take_apart(content)
    change, message = IMPOSSIBLE[case]
    certificate = header["certificate"]
    (certificate["parts"][1] if place == "part" else certificate).update(change)
    with pytest.raises(ModelFileError, match=message):
        loads(put_together(header, arrays))


def changed_arrays(path, **arrays):
    """The model of a file in which arrays have other values, behind a valid checksum."""
    header, content = take_apart(path.read_bytes())
    parts, start = [], 0
    for name, dtype, shape in header["arrays"]:
        old = np.frombuffer(content, dtype, int(np.prod(shape)), start)
        start += old.nbytes
        new = arrays.get(name, lambda a: a)(old.reshape(shape))
        parts.append(np.ascontiguousarray(new, dtype).tobytes())
    return loads(put_together(header, b"".join(parts)))


@pytest.mark.parametrize(
    ("array", "change"),
    [
        ("radius", lambda a: -a),
        ("radius", lambda a: a * np.nan),
        ("low", lambda a: a + 100.0),
        ("high", lambda a: a + np.inf),
    ],
)
def test_P4_impossible_regions_are_refused(array, change, model, tmp_path):
    with pytest.raises(ModelFileError, match=r"do not fit together|of finite float64"):
        changed_arrays(written(model, tmp_path), **{array: change})


LOOSE = {"tol": 1e-2, "max_epochs": 5000, "max_seconds": None, "random_state": 0}


@pytest.mark.parametrize("keep_dual", [True, False], ids=["dual", "bare"])
@pytest.mark.parametrize(("model", "y"), MODELS, ids=MODEL_NAMES)
def test_P4_stored_regions_are_checked(model, y, keep_dual, tmp_path):
    """What a fit has stored is found true; a radius of zero, which certifies all, is found false.

    Nobody's word is needed any more after that: the region is that of the data.
    """
    model = clone(model).set_params(**LOOSE).fit(X, y)
    path = written(model, tmp_path, keep_dual=keep_dual)
    honest = load(path)
    with pytest.warns(UserWarning, match="the word of a model file"):
        told = honest.predict_certified(X)
    result = recertify(honest, X, y, effort=20_000)
    assert (result.claim, result.region) == ("true", "true")
    for ours, theirs in zip(honest.predict_certified(X), told, strict=True):
        if ours.dtype == bool:
            assert np.all(ours >= theirs)  # a smaller region certifies more
    for now, then in zip(result.found_regions, result.stored_regions, strict=True):
        assert now.radius <= then.radius * (1 + 1e-5) + 1e-9

    def at_intercept(a):  # of two classes together the file has two, the model their difference
        return np.atleast_1d(model.intercept_) if len(a) == np.size(model.intercept_) else a

    changes = {"radius": np.zeros_like, "low": at_intercept, "high": at_intercept}
    forged = changed_arrays(path, **changes).model
    with pytest.warns(UserWarning, match="the word of a model file"):
        certified = forged.predict_certified(X)[1]
    assert certified.dtype != bool or certified.mean() >= np.mean(told[1])
    result = recertify(forged, X, y, effort=20_000)
    assert (result.claim, result.region) == ("false", "false")
    assert "not where the file says: stored radius 0, proved now" in str(result)
    with pytest.warns(UserWarning, match="the word of a model file"):
        forged.predict_certified(X)


def test_P4_a_moved_intercept_is_found_false(tmp_path):
    model = zg.LinearRegressor(lam=0.01, tol=1e-4, random_state=0).fit(X, YR + 7.0)
    region, path = model._region_sources[0].region, written(model, tmp_path)
    shift = {name: lambda a: a + 2.0 * (region.high - region.low) for name in ("low", "high")}
    result = recertify(changed_arrays(path, **shift), X, YR + 7.0)
    assert (result.claim, result.region) == ("false", "false")


def test_P4_a_stored_floor_is_checked(tmp_path):
    """The floor lets gaps count as zero: it must be what the data say."""
    exact = X @ [1.0, -2.0, 0.0, 3.0]
    model = zg.LinearRegressor(lam=1e-12, tol=1e-9, random_state=0).fit(X, exact)
    assert model.certificate_.floor > 0
    file = read(written(model, tmp_path))
    assert recertify(file, X, exact).claim == "true"
    for factor in (1.1, 1e6):
        false = forged(model, tmp_path, floor=factor * model.certificate_.floor)
        assert recertify(false, X, exact).claim == "false"
    loose = zg.LinearRegressor(random_state=0, tol=0.1).fit(X, YR)
    assert recertify(forged(loose, tmp_path, floor=1.0), X, YR).claim == "false"


@pytest.fixture(params=["memory", "store"])
def again(request, tmp_path):
    """`recertify` on X and labels in memory, or on a store of them that is read by blocks."""
    if request.param == "memory":
        return lambda file, y, **options: recertify(file, X, y, **options)

    def on_store(file, y, **options):
        store = write_store(tmp_path / f"store-{len(list(tmp_path.iterdir()))}", [(X, y)])
        return recertify_store(file, Store(store.path, "6GB"), **options)

    return on_store


def test_P3_a_refuted_claim_is_not_worked_on_further(again, tmp_path):
    """Whether the rows are in memory or in a store: there is one audit."""
    model = zg.LinearClassifier("hinge", lam=0.01, tol=0.2, random_state=0).fit(X, Y2)
    model.dual_coef_ = model.dual_coef_[:, :0]
    file = forged(model, tmp_path, gap=1e-6 * model.certificate_.primal)
    found = again(file, Y2, effort=5000)
    assert found.claim == "false"
    assert found.found.at_least > found.stored.gap
    assert found.found.epochs <= 10  # 24 until the gap is proved to be what it is


def test_P3_ctrl_c_ends_an_audit(again, tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    model = zg.LinearClassifier("hinge", lam=0.01, tol=1e-6, random_state=0).fit(X, Y2)
    file = read(written(model, tmp_path, keep_dual=False))
    for solver in (zg.Auto, BlockSDCA):
        monkeypatch.setattr(solver, "advance", stopped)
    with pytest.raises(KeyboardInterrupt):
        again(file, Y2)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("change", ["value", "sign", "swap", "target", "weight"])
def test_fingerprints_notice_every_change(storage, change):
    def fit(A, y, weights):
        A = sparse.csr_matrix(A) if storage == "csr" else A
        return zg.LinearRegressor(max_epochs=1, tol=1.0).fit(A, y, weights).fingerprint_

    A, y = make_data("squared")
    weights = np.ones(len(y))
    first = fit(A, y, weights)
    assert first == fit(A.copy(), y.copy(), weights.copy())
    A, y, weights = A.copy(), y.copy(), weights.copy()
    if change == "value":
        A[5, 2] = np.nextafter(A[5, 2], 9)
    elif change == "sign":
        A *= -1
    elif change == "swap":
        A[[3, 4]] = A[[4, 3]]
    elif change == "target":
        y[7] += 1e-12
    else:
        weights[7] = 2
    assert fit(A, y, weights) != first


# ONNX


def run_onnx(path, A):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    values = session.run(None, {"X": A})
    return {output.name: v for output, v in zip(session.get_outputs(), values, strict=True)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "model",
    [
        zg.LinearClassifier("hinge", random_state=0),
        zg.LinearClassifier("logistic", random_state=0),
        zg.LinearClassifier("softmax", random_state=0),
        zg.LinearClassifier("multiclass-hinge", random_state=0),
    ],
    ids=lambda model: model.loss,
)
@pytest.mark.parametrize(
    "labels",
    [np.array([3, -7]), NAMES[:2].astype(object), np.array([False, True]), NAMES, np.arange(3)],
    ids=["ints", "texts", "bools", "three texts", "three ints"],
)
def test_onnx_predicts_the_same(model, labels, dtype, tmp_path):
    pytest.importorskip("onnx")
    y = labels[Y2 if len(labels) == 2 else Y3]
    model, A = clone(model).fit(X, y), X.astype(dtype)
    proto = to_onnx(model, tmp_path / "model.onnx", dtype=dtype)
    out = run_onnx(proto.SerializeToString(), A)
    tolerance = {"float32": 1e-5, "float64": 1e-12}[dtype]
    scores = model.decision_function(A)
    np.testing.assert_allclose(out["scores"], scores, rtol=tolerance, atol=tolerance)
    clear = np.abs(scores) if scores.ndim == 1 else np.ptp(np.sort(scores)[:, -2:], axis=1)
    sure = clear > 10 * tolerance
    assert sure.mean() > 0.9
    np.testing.assert_array_equal(out["label"][sure], model.predict(A)[sure])
    assert ("probabilities" in out) == hasattr(model, "predict_proba")
    if "probabilities" in out:
        np.testing.assert_allclose(out["probabilities"], model.predict_proba(A), atol=tolerance)
    np.testing.assert_array_equal(run_onnx(str(tmp_path / "model.onnx"), A)["label"], out["label"])


def test_onnx_probabilities_far_from_every_class():
    """Where all sigmoids are zero the classes share evenly, as in predict_proba."""
    pytest.importorskip("onnx")
    model = zg.LinearClassifier("logistic", random_state=0).fit(X, Y3)
    model.coef_, model.intercept_ = np.ones((3, 4)), np.full(3, -1e4)
    A = X[:5].astype(np.float32)
    even = run_onnx(to_onnx(model).SerializeToString(), A)["probabilities"]
    np.testing.assert_allclose(even, 1 / 3, rtol=1e-6)
    np.testing.assert_array_equal(model.predict_proba(A), np.full((5, 3), 1 / 3))


def test_onnx_regression_and_feature_names():
    pytest.importorskip("onnx")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = zg.LinearRegressor("huber", random_state=0).fit(frame, YR)
    proto = to_onnx(model, dtype="float64")
    out = run_onnx(proto.SerializeToString(), X)
    assert list(out) == ["prediction"]
    np.testing.assert_allclose(out["prediction"], model.predict(frame), rtol=1e-12, atol=1e-12)
    assert {p.key: json.loads(p.value) for p in proto.metadata_props} == {
        "feature_names": ["a", "b", "c", "d"]
    }
    with pytest.raises(ValueError, match="dtype must be"):
        to_onnx(model, dtype="float16")
    with pytest.raises(NotFittedError):
        to_onnx(zg.LinearRegressor())


def test_onnx_missing_is_said(monkeypatch, model):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'zerogap\[onnx\]'"):
        to_onnx(model)


@pytest.mark.posix
def test_zeros_behind_a_model_are_not_read(tmp_path):
    """A terabyte that takes no room on the disk took memory until there was none."""
    path = tmp_path / "model.zg"
    save(zg.LinearClassifier(random_state=0).fit([[0.0], [1.0]], [0, 1]), path)
    os.truncate(path, 1 << 40)
    with pytest.raises(ModelFileError, match="follow the header"):
        load(path)
