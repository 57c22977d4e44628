"""The verifier of proofs: what it computes, what it refuses, and that it stands alone."""

import ast
import json
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from tamper import KINDS, make_case, tampered

import zerogap as zg
from zerogap import verify
from zerogap.losses import LOSSES
from zerogap.model_io import prove, save_proof
from zerogap.problem import Problem

FILE = Path(verify.__file__)
REGRESSION = [name for name in LOSSES if LOSSES[name].task == "regression"]
MARGIN = [name for name in LOSSES if LOSSES[name].task == "classification"]
JOINT = ["multiclass-hinge", "softmax"]


def data_for(loss, seed=0, n=30, d=4, storage="dense", dtype=np.float64, classes=3):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)).astype(dtype)
    score = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n) + 0.3
    y = score + 1.0
    if loss in MARGIN:
        y = np.where(score > 0, "yes", "no")
    elif loss in JOINT:
        y = np.argsort(np.argsort(score)) * classes // n
    return (sparse.csr_matrix(X) if storage == "csr" else X), y


def fitted(loss, X, y, sample_weight=None, **options):
    cls = zg.LinearRegressor if loss in REGRESSION else zg.LinearClassifier
    options = {"lam": 0.05, "tol": 1e-8, "random_state": 0, "max_epochs": 10_000, **options}
    return cls(loss, **options).fit(X, y, sample_weight)


def header_of(proof):
    return json.loads(proof["header"].tobytes())


def with_header(proof, **changes):
    text = json.dumps({**header_of(proof), **changes}).encode()
    return {**proof, "header": np.frombuffer(text, np.uint8)}


# --- the mathematics, once more and in another way: row by row, with fractions


def value(loss, p, z, y):
    m = 1 - y * z if loss in MARGIN else abs(z - y)
    if loss == "hinge":
        return max(Fraction(0), m)
    if loss == "smooth-hinge":
        return Fraction(0) if m <= 0 else m - p / 2 if m >= p else m * m / (2 * p)
    if loss == "squared-hinge":
        return max(Fraction(0), m) ** 2
    if loss == "squared":
        return m * m / 2
    if loss == "absolute":
        return m
    if loss == "epsilon-insensitive":
        return max(Fraction(0), m - p)
    if loss == "huber":
        return m * m / 2 if m <= p else p * (m - p / 2)
    return p * (y - z) if z <= y else (1 - p) * (z - y)


def conjugate(loss, p, a, y):
    square = {"smooth-hinge": p / 2, "squared-hinge": Fraction(1, 4), "squared": Fraction(1, 2)}
    square["huber"] = Fraction(1, 2)
    tube = p * abs(a) if loss == "epsilon-insensitive" else 0
    return -a * y + square.get(loss, 0) * a * a + tube


def by_hand(header, X, y, s, w, b, alpha):
    """P and D of a loss of one score, without a vector operation."""
    p, r, lam = (Fraction(header[k] or 0) for k in ("parameter", "l1_ratio", "lam"))
    X = [[Fraction(float(x)) for x in row] for row in X]
    y, s, w = ([Fraction(float(x)) for x in v] for v in (y, s, w))
    a = [Fraction(x) for x in alpha]
    if header["fit_intercept"]:
        up = sum(si * ai for si, ai in zip(s, a, strict=True) if ai > 0)
        down = -sum(si * ai for si, ai in zip(s, a, strict=True) if ai < 0)
        if up > down:
            a = [ai * down / up if ai > 0 else ai for ai in a]
        elif down > up:
            a = [ai * up / down if ai < 0 else ai for ai in a]
        assert sum(si * ai for si, ai in zip(s, a, strict=True)) == 0
    z = [sum(x * wj for x, wj in zip(row, w, strict=True)) + Fraction(b) for row in X]
    S, loss, rows = sum(s), header["loss"], range(len(y))
    penalty = (1 - r) / 2 * sum(x * x for x in w) + r * sum(map(abs, w))
    u = [sum(s[i] * a[i] * X[i][j] for i in rows) / (lam * S) for j in range(len(w))]
    star = sum(max(Fraction(0), abs(x) - r) ** 2 for x in u) / (2 * (1 - r))
    P = sum(s[i] * value(loss, p, z[i], y[i]) for i in rows) / S + lam * penalty
    D = -sum(s[i] * conjugate(loss, p, a[i], y[i]) for i in rows) / S - lam * star
    return P, D


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("loss", [name for name in LOSSES if name != "logistic"])
def test_values_are_exact(loss, free, monkeypatch):
    X, y = data_for(loss)
    s = np.random.default_rng(1).random(len(y))
    model = fitted(loss, X, y, s, fit_intercept=free, l1_ratio=0.25)
    proof = prove(model, X, y, s)
    header, w, b, alpha = header_of(proof), *(proof[k][0] for k in ("w", "b", "alpha"))
    target = np.where(y == "yes", 1.0, -1.0) if loss in MARGIN else y
    P, D = by_hand(header, X, target, s, w[0], b[0], alpha[0])
    assert verify.verify(proof, X, y, s)[2] == [((P, P), (D, D))]
    monkeypatch.setattr(verify, "FEW", 0)  # the way of large data
    monkeypatch.setattr(verify, "BLOCK", 16)
    assert verify.verify(proof, X, y, s)[2] == [((P, P), (D, D))]
    for bound, claim, toward in ((P, "primal", -math.inf), (D, "dual", math.inf)):
        beyond = math.nextafter(header[claim][0], toward)
        assert beyond < bound if claim == "primal" else beyond > bound  # the nearest floats
        assert verify.verify(with_header(proof, **{claim: [beyond]}), X, y, s)[0] == "false"


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("loss", ["logistic", *JOINT])
def test_values_agree_with_the_library(loss, free, monkeypatch):
    X, y = data_for(loss)
    model = fitted(loss, X, y, fit_intercept=free)
    proof = prove(model, X, y)
    answer, _, [(P, D)] = verify.verify(proof, X, y)
    assert answer == "true"
    assert float(P[0]) == pytest.approx(model.certificate_.primal, rel=1e-13)
    claimed = model.certificate_
    doubt = 1e-14 + claimed.rounding
    assert float(P[1] - D[0]) == pytest.approx(claimed.gap, rel=1e-4, abs=doubt)
    monkeypatch.setattr(verify, "FEW", 0)
    assert verify.verify(proof, X, y)[2] == [(P, D)]


def test_logarithms_are_enclosed():
    """Against series of fractions: log(1 + e^-1) and log 2."""
    e = sum(Fraction((-1) ** k, math.factorial(k)) for k in range(60))  # e^-1
    x = e / (2 + e)  # log(1 + e) = 2 artanh(e / (2 + e))
    expected = 2 * sum(x ** (2 * k + 1) / (2 * k + 1) for k in range(100))
    found = verify.logsumexp(np.array([Fraction(0)]), np.array([Fraction(-1)]))[0]
    assert abs(found - expected) < verify.LOG_ERROR
    half = verify.plogp(np.array([Fraction(1, 2)]), np.array([Fraction(0)]))[0]
    x = Fraction(1, 3)  # log 2 = 2 artanh(1/3)
    assert abs(half + sum(x ** (2 * k + 1) / (2 * k + 1) for k in range(100))) < verify.LOG_ERROR


@pytest.mark.parametrize("loss", JOINT)
def test_votes_are_balanced(loss):
    """An unbalanced point of many classes is repaired, and bounds the optimum still."""
    X, y = data_for(loss)
    model = fitted(loss, X, y)
    rng = np.random.default_rng(0)
    problem = Problem(X, y, loss, 0.05, fit_intercept=True)
    best = zg.solve(problem, zg.Auto(), tol=1e-9, max_epochs=10_000).certificate.primal
    proof = prove(model, X, y)
    for noise in (1e-9, 1e-3, 0.3):
        votes = proof["alpha"][0] * (1 - 2 * noise) + noise * rng.random(proof["alpha"][0].shape)
        votes[y, np.arange(len(y))] = 0.0
        votes /= np.maximum(1.0, 1.001 * votes.sum(axis=0))
        _, _, [(_, D)] = verify.verify({**proof, "alpha": votes[None]}, X, y)
        assert best - 2.0 - 40 * noise < D[1] <= best + 1e-12
    assert D[1] < best


@pytest.mark.parametrize(("storage", "dtype"), [("dense", np.float32), ("csr", np.float64)])
@pytest.mark.parametrize("loss", [*LOSSES, *JOINT])
def test_models_of_all_kinds(loss, storage, dtype):
    X, y = data_for(loss, 2, storage=storage, dtype=dtype)
    options = {} if loss in REGRESSION else {"class_weight": "balanced"}
    proof = prove(fitted(loss, X, y, l1_ratio=0.1, **options), X, y)
    assert verify.verify(proof, X, y)[0] == "true"
    other = X.toarray() if storage == "csr" else sparse.csr_matrix(X)
    assert verify.verify(proof, other, y)[0] == "true"  # the same numbers are the same data


def test_classes_against_the_rest():
    X, y = data_for("softmax")
    model = fitted("hinge", X, np.array(["a", "b", "c"])[y])
    proof = prove(model, X, np.array(["a", "b", "c"])[y])
    answer, _, found = verify.verify(proof, X, np.array(["a", "b", "c"])[y])
    assert (answer, len(found)) == ("true", 3)
    total = math.fsum(float(P[1] - D[0]) for P, D in found)
    claimed = model.certificate_
    assert total == pytest.approx(claimed.gap, rel=1e-6, abs=1e-14 + 2.0 * claimed.rounding)


def test_models_without_dual_variables():
    X, y = data_for("hinge", n=100)
    model = fitted("hinge", X, y, tol=1e-6)
    model.dual_coef_ = np.empty((1, 0))
    proof = prove(model, X, y)
    assert verify.verify(proof, X, y)[0] == "true"
    header = header_of(proof)
    assert header["primal"][0] - header["dual"][0] <= 1.1e-6 * header["primal"][0]
    loose = header_of(prove(model, X, y, effort=0))
    assert loose["dual"][0] <= header["dual"][0]


def test_numbers_of_all_sizes():
    """Where float64 would overflow or lose digits, fractions do not."""
    X, y = data_for("squared", n=40)
    for scale in (1e-150, 1e-9, 1e9, 1e120):
        table = X * np.array([scale, 1.0, 1.0, 1.0])
        proof = prove(fitted("squared", X, y), X, y)
        header = {**header_of(proof), "lam": 0.05}
        matrix, targets, s, header["data"] = verify.prepare(header, table, y)
        parts = [proof[k][0] for k in ("w", "b", "alpha")]
        P, D = verify.bounds(header, matrix, targets, s, *parts[:2], parts[2][:, None])
        assert by_hand(header, table, y, s, parts[0][0], parts[1][0], parts[2][0])[:1] * 2 == P
        assert D[0] == D[1] < P[0]


def raw_columns(loss):
    """Return data with columns between 1 and 1e12, none of them scaled, and weights."""
    X, y = data_for(loss, 3)
    return X * [1.0, 1e3, 1e9, 1e12], y, np.random.default_rng(3).integers(1, 4, len(y)) * 1.0


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("loss", [*LOSSES, *JOINT])
def test_proofs_on_raw_columns_prove_what_the_certificate_says(loss, free):
    """Dual variables alone do not, in float64: a proof has what they lack."""
    X, y, s = raw_columns(loss)
    model = fitted(loss, X, y, s, tol=1e-4, lam=1e-4, fit_intercept=free)
    proof = prove(model, X, y, s)
    answer, _, found = verify.verify(proof, X, y, s)
    assert answer == "true"
    assert float(sum(P[1] - D[0] for P, D in found)) <= model.certificate_.gap
    assert model.certificate_.relative_gap <= 1e-4
    if "rest" in proof:
        alone = {name: array for name, array in proof.items() if name != "rest"}
        assert verify.verify(alone, X, y, s)[0] == "false"
        far = {**proof, "rest": proof["rest"] + 2.0}
        assert verify.verify(far, X, y, s)[0] == "false"
        short = {**proof, "rest": proof["rest"][..., 1:]}
        assert verify.verify(short, X, y, s)[0] == "false"


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("loss", [name for name in LOSSES if name != "logistic"])
def test_sums_of_alpha_and_rest_are_exact(loss, free, monkeypatch):
    X, y = data_for(loss)
    s = np.random.default_rng(1).random(len(y))
    proof = prove(fitted(loss, X, y, s, fit_intercept=free), X, y, s)
    header, w, b, alpha = header_of(proof), *(proof[k][0] for k in ("w", "b", "alpha"))
    away = np.minimum(np.abs(alpha), np.abs(np.abs(alpha) - np.abs(alpha).max()))
    rest = 1e-17 * away * np.random.default_rng(2).uniform(-1, 1, alpha.shape)
    both = [Fraction(a) + Fraction(r) for a, r in zip(alpha[0], rest[0], strict=True)]
    target = np.where(y == "yes", 1.0, -1.0) if loss in MARGIN else y
    P, D = by_hand(header, X, target, s, w[0], b[0], both)
    held = {**proof, "rest": rest[None]}
    assert verify.verify(held, X, y, s)[2] == [((P, P), (D, D))]
    monkeypatch.setattr(verify, "FEW", 0)  # the way of large data
    assert verify.verify(held, X, y, s)[2] == [((P, P), (D, D))]


def test_products_out_of_range_are_exact(monkeypatch):
    X, y = data_for("squared")
    proof = prove(fitted("squared", X, y), X, y)
    proof["w"][0, 0, :2] = 1e-310, 1e200
    proof["alpha"][0, 0, :2] = -5e-324, 1e170
    expected = verify.verify(proof, X, y)
    monkeypatch.setattr(verify, "FEW", 0)
    assert expected[0] == "false"
    assert verify.verify(proof, X, y) == expected


@pytest.mark.parametrize("shift", [0.0, 1e9])
def test_exact_sums(shift, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 7)) * 10.0 ** rng.integers(-30, 30, 7) + shift
    matrix = verify.Matrix(X)
    c, s = rng.standard_normal(50) * 10.0 ** rng.integers(-20, 20, 50), rng.random(50)
    w = rng.standard_normal(7)
    expected = matrix.product(w), matrix.product(c, s)
    monkeypatch.setattr(verify, "FEW", 0)
    monkeypatch.setattr(verify, "BLOCK", 64)
    found = matrix.product(w), matrix.product(c, s)
    assert all(np.array_equal(*pair) for pair in zip(found, expected, strict=True))


# --- what is refused


@pytest.mark.parametrize("kind", KINDS)
def test_tampered_proofs_are_refused(kind):
    refused = 0
    for seed in range(40):
        case = make_case(seed % 11)
        changed, data, matters = tampered(case, kind, np.random.default_rng(seed))
        answer = verify.verify(changed, *data)[0]
        assert (answer != "true") == matters, (kind, seed)
        refused += matters
    assert refused >= 5


def test_problems_of_the_format_are_refused():
    X, y = data_for("quantile")
    proof = prove(fitted("quantile", X, y), X, y)
    assert verify.verify(proof, X, y)[0] == "true"
    wrong = [
        {"format": "zerogap proof 2"},
        {"loss": "cubic"},
        {"loss": "softmax"},
        {"parameter": 1.5},
        {"parameter": None},
        {"lam": 0.0},
        {"lam": -1.0},
        {"lam": math.nan},
        {"lam": "1"},
        {"l1_ratio": 1.0},
        {"l1_ratio": -0.1},
        {"fit_intercept": False},
        {"fit_intercept": 1},
        {"weighted": []},
        {"classes": [1, 1]},
        {"class_weight": [1.0, 2.0]},
        {"weighted": True},
        {"data": "0" * 64},
        {"primal": []},
        {"primal": [math.nan]},
        {"primal": ["x"]},
        {"dual": [[0.0]]},
        {"dual": None},
    ]
    for change in wrong:
        assert verify.verify(with_header(proof, **change), X, y)[0] != "true", change
    for name in ("header", "w", "b", "alpha"):
        assert verify.verify({k: v for k, v in proof.items() if k != name}, X, y)[0] == "false"
        spoilt = {**proof, name: proof[name][..., :-1]}
        assert verify.verify(spoilt, X, y)[0] == "false", name
    for bad in (math.nan, math.inf, 2.0):
        alpha = proof["alpha"].copy()
        alpha[0, 0, 3] = bad
        assert verify.verify({**proof, "alpha": alpha}, X, y)[0] == "false"
    assert verify.verify(proof, X[:-1], y[:-1])[0] == "false"
    assert verify.verify(proof, X, y[::-1])[0] == "false"


def test_csr_matrices_are_checked():
    X, y = data_for("squared", storage="csr")
    proof = prove(fitted("squared", X, y), X, y)
    shuffled = X.copy()
    for i in range(X.shape[0]):
        part = slice(X.indptr[i], X.indptr[i + 1])
        shuffled.indices[part] = X.indices[part][::-1]
        shuffled.data[part] = X.data[part][::-1]
    assert verify.verify(proof, shuffled, y)[0] == "true"
    for name, at, bad in (("indices", 0, 99), ("indices", 0, -1), ("indptr", -1, 3)):
        spoilt = X.copy()
        getattr(spoilt, name)[at] = bad
        assert verify.verify(proof, spoilt, y)[0] == "false"
    doubled = X.copy()
    doubled.indices[X.indptr[1] : X.indptr[2]] = 0
    assert verify.verify(proof, doubled, y)[0] == "false"


# --- alone


def test_the_verifier_is_one_short_file_without_zerogap():
    text = FILE.read_text()
    assert len(text.splitlines()) <= 300
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names.add(node.module.split(".")[0])
    assert names - {"numpy"} <= sys.stdlib_module_names


def run_alone(folder, *arguments):
    (folder / "verify.py").write_bytes(FILE.read_bytes())
    line = [sys.executable, "-I", "verify.py", *map(str, arguments)]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)


def test_the_verifier_runs_alone(tmp_path):
    X, y = data_for("huber", storage="csr")
    weights = np.linspace(0.0, 1.0, len(y))
    save_proof(prove(fitted("huber", X, y, weights), X, y, weights), tmp_path / "model.proof")
    sparse.save_npz(tmp_path / "X.npz", X)
    with np.load(tmp_path / "X.npz") as parts:
        np.savez_compressed(tmp_path / "data.npz", **parts, y=y, sample_weight=weights)
        np.savez(tmp_path / "other.npz", **parts, y=np.nextafter(y, 9.0), sample_weight=weights)
    done = run_alone(tmp_path, "model.proof", "data.npz")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("true: ")
    done = run_alone(tmp_path, "model.proof", "other.npz")
    assert (done.returncode, done.stdout) == (1, "false: these are not the data of the proof\n")
    (tmp_path / "model.proof").write_bytes((tmp_path / "model.proof").read_bytes()[:-40])
    assert run_alone(tmp_path, "model.proof", "data.npz").returncode == 1
