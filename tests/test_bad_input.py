"""Cases 1 to 53 of the fault catalogue: bad input is refused by name, the rest solved with a proof.

The proof is checked here: `certified` recomputes both objectives in extended precision.
"""

import subprocess
import sys
import threading
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.special import entr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError

import zerogap as zg
from zerogap.losses import LOSSES

N, D, LAM, TOL, AT = 40, 3, 0.05, 1e-8, 5  # AT: the row that is made bad
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D)).astype(np.float32).astype(np.float64)  # exact in both types
VALUES = X @ [1.0, -2.0, 0.5] + 0.4 + RNG.standard_normal(N)
LABELS, WEIGHTS = np.where(VALUES > 0.2, 1, -1), RNG.integers(1, 4, N).astype(float)
CSR = ("data", "indices", "indptr")
KINDS = {"dense": np.array, "csr": sparse.csr_array}
FORMS = {f"{k}{b}": partial(KINDS[k], dtype=f"f{b // 8}") for k in KINDS for b in (32, 64)}
MATHS = {  # phi(z, y) and -phi*(-a, y), written independently of the library
    "hinge": (lambda z, y: np.maximum(0, 1 - y * z), lambda a, y: a * y),
    "logistic": (lambda z, y: np.logaddexp(0, -y * z), lambda a, y: entr(a * y) + entr(1 - a * y)),
    "squared": (lambda z, y: (z - y) ** 2 / 2, lambda a, y: a * y - a * a / 2),
}
every_model = pytest.mark.parametrize("loss", MATHS)
every_form = pytest.mark.parametrize("form", FORMS)
dense_and_csr = pytest.mark.parametrize("form", ["dense64", "csr64"])


def make(loss, **params):
    """Return an estimator and its targets; hinge stands for models without an intercept."""
    classifies = LOSSES[loss].task == "classification"
    common = {"loss": loss, "lam": LAM, "tol": TOL, "fit_intercept": loss != "hinge"}
    cls = zg.LinearClassifier if classifies else zg.LinearRegressor
    return cls(**(common | {"random_state": 0} | params)), LABELS if classifies else VALUES


def fit(loss, X, w=None, **params):
    model, y = make(loss, **params)
    return model.fit(X, y, w)


def _columns_that_are_no_numbers():
    days = pd.date_range("2024-02-01", periods=N)
    return {
        "text": ["u", "v"] * (N // 2),
        "strings": pd.array(["1.5", None] * (N // 2), dtype="string"),
        "categories": pd.Categorical(["u", "v"] * (N // 2)),
        "days": days,
        "moments": days.tz_localize("Europe/Berlin"),
        "spans": days - days[0],
    }


def changed(values, value, at=AT):
    values = np.array(values, dtype=np.result_type(values, type(value)))
    values[at] = value
    return values


def csr(form="csr64", **arrays):
    matrix = FORMS[form](X)
    for name, array in arrays.items():
        setattr(matrix, name, array)
    return matrix


def refused(model, X, y, w=None, *, match, error=ValueError):
    with pytest.raises(error, match=match):
        model.fit(X, y, w)
    assert not {"coef_", "intercept_", "classes_", "dual_coef_", "certificate_"} & set(vars(model))


def certified(model, X, y, w=None, tol=TOL):
    """Assert that the model is finite and its certificate true and, with tol, small enough."""
    X = np.asarray(X.toarray() if sparse.issparse(X) else X, np.float64).astype(np.longdouble)
    y = np.where(y == model.classes_[-1], 1, -1) if hasattr(model, "classes_") else y
    share = np.ones(len(y), np.longdouble) if w is None else np.asarray(w, np.longdouble)
    lam, share = model.lam or 1 / share.sum(), share / share.sum()
    coef, alpha = np.ravel(model.coef_), np.ravel(model.dual_coef_)
    assert np.isfinite(np.append(coef, model.intercept_)).all()
    assert model.loss == "squared" or ((alpha * y >= 0) & (alpha * y <= 1)).all()
    assert not model.fit_intercept or abs(share @ alpha) <= 1e-12 * (share @ abs(alpha))
    value, bound = MATHS[model.loss]
    primal = share @ value(X @ coef + model.intercept_, y) + lam / 2 * (coef @ coef.astype(X.dtype))
    centre = share @ X if model.fit_intercept else 0  # which sum s a = 0 leaves without effect
    dual = share @ bound(alpha, y) - lam / 2 * (((X - centre).T @ (share * alpha) / lam) ** 2).sum()
    found = model.certificate_
    # u is rounded by some ulps of the terms that it sums, which shows where values are 1e12
    rounding = 1e-15 * (np.abs(X - centre).T @ (share * np.abs(alpha))) / lam
    allowed = 1e-10 * abs(primal) + lam * (rounding**2).sum() + found.rounding
    assert max(abs(found.primal - primal), abs(found.gap - (primal - dual))) <= allowed
    assert tol is None or found.gap <= max(tol * abs(primal), found.floor)
    return model


def same_bits(one, two):
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)


def same_to_the_gap(one, two, lam, other):
    """Each is within sqrt(2 gap / lam) of the common optimum, by strong convexity."""
    radius = sum(np.sqrt(2 * m.certificate_.gap / k) for m, k in ((one, lam), (two, other)))
    assert radius < 1e-2  # or the comparison would say little
    assert np.linalg.norm(one.coef_ - two.coef_) <= radius + 1e-12


def refusals():
    """Yield case, what the message says, and what differs from a good fit (y as a function)."""
    for name, form in FORMS.items():
        for value, kind in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
            case = "03" if "csr" in name else "01" if kind == "NaN" else "02"
            bad = changed(X, value, (AT, 1))
            match = f"X contains {kind} at row {AT}, column 1"
            yield f"{case}-{value}-{name}", match, {"X": form(bad)}
        bad = changed(bad, np.inf, (AT + 1, 0))  # and a second one of the other sign
        yield f"03-both-infinities-{name}", f"row {AT}, column 1", {"X": form(bad)}
        yield f"24-no-rows-{name}", r"0 sample\(s\)", {"X": form(X[:0]), "y": lambda y: y[:0]}
        yield f"26-no-columns-{name}", r"0 feature\(s\)", {"X": form(X[:, :0])}
        yield f"30-{name}", rf"{N}\b.*\b{N - 1}\b", {"X": form(X), "y": lambda y: y[:-1]}
    for value, kind in ((np.nan, "NaN"), (np.inf, "infinity")):
        match = f"y contains {kind}.*position {AT}"
        yield f"04-{kind}", match, {"y": lambda y, value=value: changed(y * 1.0, value)}
    for scale in (1e200, 1e307):
        for name in ("dense64", "csr64"):
            yield f"05-{scale}-{name}", "standardise the columns", {"X": FORMS[name](X * scale)}
    strings, wide = np.full((N, D), "1.5"), (X.astype(np.longdouble), X + 1j)
    texts = strings, strings.astype("S"), strings.astype("O"), strings.tolist()
    texts += pd.DataFrame(strings), np.full((N, D), "word", "O")
    others = X.astype("M8[s]"), X.astype("m8[s]"), np.zeros((N, D), "f8,f8")
    for k, bad in enumerate((*texts, *others, *wide, *map(sparse.csr_array, wide))):
        name = f"16-{k}-{type(bad).__name__}-{getattr(bad, 'dtype', 'str')}"
        yield name, r"\bX\b|Complex data", {"X": bad}
    for name, column in _columns_that_are_no_numbers().items():
        frame = pd.DataFrame({"first": X[:, 0], "second": column})
        yield f"16-column-{name}", "^column 'second' of X holds (text|times)", {"X": frame}
        yield f"16-polars-{name}", "^column 'second' of X holds", {"X": pl.from_pandas(frame)}
    for value in ({}, 1 + 2j, pd.Timestamp(0)):  # scikit-learn's checks demand a TypeError
        bad = changed(X.astype("O"), value, (AT, 1))
        yield f"16-{value}", "number", {"X": bad, "error": (TypeError, ValueError)}
    masked = np.arange(N) == AT
    yield "17-masked-X", "X .*masked", {"X": np.ma.array(X, mask=np.tile(masked[:, None], D))}
    yield "17-masked-y", "y .*masked", {"y": lambda y: np.ma.array(y, mask=masked)}
    yield "17-masked-w", "sample_weight .*masked", {"w": np.ma.array(WEIGHTS, mask=masked)}
    for dtype in ("Float64", "Int64", "boolean"):
        frame = pd.DataFrame(X > 0).astype(dtype).mask(X[AT, 1] == X)
        yield f"17-X-{dtype}", f"X contains NaN at row {AT}, column 1", {"X": frame}
        named = frame.set_axis(["a", "b", "c"], axis=1)
        yield f"17-name-{dtype}", f"X contains NaN at row {AT}, column 1 \\('b'\\)", {"X": named}
    series = lambda y: pd.Series(y.round(), dtype="Int64").mask(masked)  # noqa: E731
    yield "17-y-Int64", "y contains NaN", {"y": series}
    for value in (-1.0, np.nan, np.inf, -np.inf):
        match = f"sample_weight.* position {AT}"
        yield f"{19 if value == -1 else 20}-{value}", match, {"w": changed(WEIGHTS, value)}
    for value in (0.0, 1e300, 1.7e308, 5e-324):
        match, given = "(?i)sample.weight", {"w": np.full(N, value), "lam": None}
        yield f"{21 if value else 18}-{value}", match, given
    for shape in ((N - 1,), (N + 1,), (N, 1), (1, N), (N, 2)):
        yield f"22-{shape}", "(?i)sample.weight", {"w": np.ones(shape)}
    for form in (np.asarray, sparse.coo_array):
        yield f"28-{form.__name__}", r"reshape\(-1, 1\)", {"X": form(X[:, 0])}
        yield f"29-{form.__name__}", "dim", {"X": form(X[:, :, None])}
    indices, indptr = csr().indices, csr().indptr
    for value in (D, 10**9, -1):
        for dtype in ("i4", "i8"):
            bad = changed(indices, value, AT * D).astype(dtype), indptr.astype(dtype)
            match = f"X .*row {AT} has column index {value}"
            yield f"31-{value}-{dtype}", match, {"X": csr(indices=bad[0], indptr=bad[1])}
    steps = [indptr[:0], indptr[:-1], np.append(indptr, N * D)]
    steps += [changed(indptr, v, i) for v, i in ((N * D, AT), (-1, AT), (1, 0), (N * D + 1, -1))]
    parts = [{"indptr": bad.astype(np.int32)} for bad in steps]
    for k, bad in enumerate([*parts, {"data": X.ravel()[:-1]}, {"indices": indices[:-1]}]):
        yield f"32-{k}", "X .*indptr", {"X": csr(**bad)}
    for value in ("a", None):
        mixed = lambda y, value=value: [value, *y.tolist()[1:]]  # noqa: E731
        yield f"42-{value}-list", r"\by\b", {"y": mixed}
        yield f"42-{value}-objects", r"\by\b", {"y": lambda y, m=mixed: np.array(m(y), "O")}
    yield "42-no-y", r"\by\b", {"y": lambda y: None}
    yield (
        "44-two-columns-twice",
        r"\by\b",
        {"y": lambda y: np.stack([y, y, y, y]).T.reshape(-1, 2, 2)},
    )
    for name, match, values in (
        ("46-lam", "lam must be", (0, 0.0, -1.0, np.nan, np.inf, "1", True, [1.0], 1j)),
        ("49-tol", "tol must be", (-1, np.nan, np.inf, "1", None, True)),
        ("50-max_epochs", "integer >= 1", (0, -1, 2.5, 10.0, np.inf, np.nan, "5", None, True)),
        ("51-random_state", "random_state must be", (-1, 1.5, "a", True, [1], np.nan)),
        ("52-loss", "loss must be", (None, 3, zg.Hinge)),
        ("52-loss", "choose (hinge.*logistic|squared.*huber)", ("nonsense", "Hinge", "")),
        ("52-solver", "unknown solver.*auto.*sdca", ("nonsense", "SDCA", None, 3, zg.SDCA)),
    ):
        yield from ((f"{name}-{value!r}", match, {name[3:]: value}) for value in values)


@every_model
@pytest.mark.parametrize("case", [*refusals()], ids=lambda case: case[0])
def test_refused_case(loss, case):
    (name, match, given), (model, y) = case, make(loss)
    given = {"X": X, "y": lambda y: y, "w": None, "error": ValueError} | given
    bad, y, w, error = given.pop("X"), given.pop("y")(y), given.pop("w"), given.pop("error")
    refused(model.set_params(**given), bad, y, w, match=match, error=error)
    if name[:2] in ("01", "02", "03", "16", "31", "32"):
        model = fit(loss, X)
        with pytest.raises(error, match=match):
            model.predict(bad)


def equals():
    """Yield case, a matrix in an unusual form, its plain form, the form of targets and weights."""
    huge = np.random.default_rng(1).integers(-(2**62), 2**62, (N, D))
    small = [(f"14-{t}", np.abs(10 * X).astype(t)) for t in ("bool", "u1", "i1", "u8", "f2")]
    for case, given in (("13-int64", huge), *small):
        for kind in (np.array, sparse.csr_array)[: 1 if given.dtype == np.float16 else 2]:
            yield f"{case}-{kind.__name__}", kind(given), kind(given.astype(float)), np.array
    yield "16-objects", X.astype(object), X, np.array
    indices, indptr = csr().indices, csr().indptr
    twice = {"data": np.repeat(X / 2, 2), "indices": np.repeat(indices, 2), "indptr": 2 * indptr}
    stale = csr(**twice, has_canonical_format=True)  # as after writing into a matrix that was
    unsorted = csr(data=X[:, ::-1].ravel(), indices=indices[::-1].copy())
    spare = csr(data=np.append(X, np.nan), indices=np.append(indices, np.int32(9)))
    given = {"unsorted": unsorted, "duplicates": csr(**twice), "stale-flag": stale, "spare": spare}
    yield from ((f"33-{name}", matrix, csr(), np.array) for name, matrix in given.items())
    for kind in (sparse.csr_array, sparse.csr_matrix):
        plain = kind(X * (X > 0))
        for form in ("csc", "coo", "bsr", "dia", "lil", "dok"):
            yield f"34-{form}-{kind.__name__}", plain.asformat(form), plain, np.array
    for name, kinds, change in (
        ("35-int64", ["csr"], lambda a: a.astype(np.int64) if a.dtype == np.int32 else a),
        ("36-read-only", KINDS, lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape)),
        ("36-strided", KINDS, lambda a: np.repeat(a, 2, axis=0)[::2]),
        ("36-reversed", KINDS, lambda a: a[::-1].copy()[::-1]),
        ("36-fortran", ["dense"], np.asfortranarray),
        ("36-byte-swapped", KINDS, lambda a: a.astype(a.dtype.newbyteorder())),
    ):
        for form in (form for form in FORMS if form[:-2] in kinds):
            plain = FORMS[form](X)
            parts = {p: change(a) for p, a in getattr(plain, "__dict__", {}).items() if p in CSR}
            yield f"{name}-{form}", csr(form, **parts) if parts else change(plain), plain, change


@every_model
@pytest.mark.parametrize("case", [*equals()], ids=lambda case: case[0])
def test_same_model_case(loss, case):
    _, given, plain, change = case
    model, y = make(loss, lam=LAM * float(plain.max()) ** 2, max_epochs=5000)
    arrays = [given, *getattr(given, "__dict__", {}).values(), change(y), change(WEIGHTS)]
    arrays = [a for a in arrays if isinstance(a, np.ndarray)]
    before = [(a.tobytes(), a.dtype, a.strides, a.flags.writeable) for a in arrays]
    certified(model.fit(given, *arrays[-2:]), plain, y, WEIGHTS)
    same_bits(model, clone(model).fit(plain, y, WEIGHTS))
    np.testing.assert_array_equal(model.predict(given), model.predict(plain))
    assert [(a.tobytes(), a.dtype, a.strides, a.flags.writeable) for a in arrays] == before


def fits():
    """Yield case, X, weights, parameters, and what a refusal would have to say (None: must fit)."""
    for form in FORMS:
        least = float(np.finfo(np.float32 if "32" in form else np.float64).smallest_subnormal)
        for case, tiny in (("06-tiny", 1e-200 * X), ("07-denormal", np.sign(X) * least)):
            for k in (1, D):
                given = FORMS[form](np.hstack([tiny[:, :k], X[:, k:]]))
                yield f"{case}-{k}-{form}", given, None, {}, None
    for w in (1e300 * WEIGHTS, 1e-300 * WEIGHTS, changed(WEIGHTS, 1e-280)):
        yield f"21-{w.min()}-{w.max()}", X, w, {}, None
    yield "21-lost", X, changed(WEIGHTS, 1e-300), {}, "of the sum of all weights: set it to 0"
    yield "21-lam", X, 1e-300 * WEIGHTS, {"lam": None}, None
    for form in ("dense64", "csr64"):
        given, skewed = FORMS[form](X), FORMS[form](X * [1, 1e12, 1])
        yield f"08-{form}", skewed, None, {"max_epochs": 100}, "never"
        for lam in (5e-324, 1e-300, 1e-290, 1e-280, 1e-150, 1e-50, 1e-20):
            yield f"47-{lam}-{form}", given, None, {"lam": lam, "max_epochs": 30}, "lam="
        for lam in (1e300, 1.7e308):
            yield f"48-{lam}-{form}", given, None, {"lam": lam}, None
        yield f"49-tol-zero-{form}", given, None, {"tol": 0, "max_epochs": 7}, "never"


@every_model
@pytest.mark.parametrize("case", [*fits()], ids=lambda case: case[0])
def test_fits_case(loss, case):
    name, given, w, params, refusal = case
    model, y = make(loss, **params)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            certificate = model.fit(given, y, w).certificate_
        except ValueError as error:
            assert refusal in str(error)  # noqa: PT017
            return
    certified(model, given, y, w, tol=None if refusal else TOL)
    reached = certificate.gap <= model.tol * certificate.primal
    assert [w.category for w in caught] == ([] if reached else [ConvergenceWarning])
    assert name[:2] != "48" or np.abs(model.coef_).max() < 1e-298
    assert name[:2] != "49" or (certificate.epochs == model.n_iter_ == 7 and certificate.gap > 0)


@every_model
@every_form
def test_cases_01_38_39_predict_without_a_model_or_for_another(loss, form):
    model, y = make(loss)
    before = set(vars(model))
    for _ in range(2):  # before a fit, and after a refused one
        with pytest.raises(NotFittedError):
            model.predict(X)
        refused(model, FORMS[form](changed(X, np.nan, (AT, 1))), y, match="NaN")
    assert set(vars(model)) == before
    model.fit(FORMS[form](X), y)
    for d in (D - 1, D + 1):
        with pytest.raises(ValueError, match=rf"X has {d} features.* {D} features"):
            model.predict(FORMS[form](np.ones((4, d))))


@dense_and_csr
@every_model
def test_cases_05_25_40_43_targets(loss, form):
    """One row, one class, continuous labels, and targets whose square overflows."""
    (model, y), given, row = make(loss), FORMS[form](X), FORMS[form](X[:1])
    if loss == "squared":
        certified(clone(model).fit(row, y[:1]), row, y[:1])
        refused(model, given, 1e200 * y, match=r"\by\b")
    else:
        refused(model, row, y[:1], match="two classes.* one class")
        refused(model, given, np.ones(N), match="two classes.* one class")
        refused(model, given, y, y > 0, match="two classes.* positive weight")
        refused(model, given, VALUES, match="continuous")


@every_form
@every_model
def test_case_09_zero_rows_add_their_constant_loss(loss, form):
    one, y = make(loss, fit_intercept=False)
    two, _ = make(loss, fit_intercept=False, lam=LAM / 2)
    more = FORMS[form](np.vstack([X, 0 * X])), np.append(y, y)
    certified(two.fit(*more), *more)
    same_to_the_gap(one.fit(FORMS[form](X), y), two, LAM, LAM / 2)
    total = one.certificate_.primal + MATHS[loss][0](0.0, y).mean()
    assert 2 * two.certificate_.primal == pytest.approx(total, rel=2 * TOL)


@dense_and_csr
@pytest.mark.parametrize("loss", LOSSES)
def test_cases_10_12_27_no_information_constant_column_one_column(loss, form):
    """Every loss reaches the default gap within the default budget: a warning is an error here."""
    for intercept in (True, False):
        model = fit(loss, FORMS[form](0 * X), fit_intercept=intercept)
        assert not model.coef_.any()
        assert model.certificate_.epochs <= 1
        assert 0 <= model.certificate_.gap <= 1e-9 * model.certificate_.primal
    for data in (X[:, :1], np.column_stack([X, np.full(N, 3.0)])):
        model = fit(loss, FORMS[form](data), tol=1e-3, fit_intercept=True)
        assert model.certificate_.gap <= 1e-3 * model.certificate_.primal
        assert np.isfinite(model.coef_).all()
    # the free intercept does all that a constant column could: no weight at the optimum
    assert abs(model.coef_.flat[-1]) <= np.sqrt(2 * model.certificate_.gap / LAM)


@every_form
@every_model
def test_cases_11_23_44_weights_are_counts(loss, form):
    """Rows repeated, or removed where the weight is zero; each with opposite targets as well."""
    counts = np.random.default_rng(2).integers(0, 4, 2 * N)
    model, y = make(loss, lam=None)
    stacked, y = FORMS[form](np.vstack([X, X])), np.append(y, -y)
    with pytest.warns(DataConversionWarning, match="1d array"):
        weighted = clone(model).fit(stacked, y[:, None], counts)
    copies = FORMS[form](np.repeat(np.vstack([X, X]), counts, axis=0)), np.repeat(y, counts)
    certified(model.fit(*copies), *copies)
    same_to_the_gap(certified(weighted, stacked, y, counts), model, *[1 / counts.sum()] * 2)


@every_model
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("scale", [1.0, 2.0**100, 2.0**-100])
def test_case_15_float32_has_the_gap_of_float64(loss, storage, scale):
    """The scales suit float32, their squares do not: those must be taken in float64."""
    forms = (FORMS[f"{storage}{bits}"](X * scale) for bits in (32, 64))
    single, double = (fit(loss, form, lam=LAM * scale**2).certificate_ for form in forms)
    assert single.primal == pytest.approx(double.primal, rel=1e-6)
    assert single.gap == pytest.approx(double.gap, rel=1e-6, abs=1e-15)


@pytest.mark.parametrize("value", [10**9, -(10**8)])
def test_case_31_row_index_out_of_range(value):
    """In a process of its own: SciPy's conversion to CSR follows a wrong index out of bounds."""
    code = "import numpy as np, scipy.sparse as sp, zerogap as zg; X = sp.coo_array(np.eye(40)); "
    code += f"X.row[3] = {value}; zg.LinearRegressor().fit(X, np.ones(40))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ValueError" in done.stderr, (done.returncode, done.stderr)


@every_model
@dense_and_csr
@pytest.mark.parametrize("value", [None, np.nan], ids=["noise", "nan"])
@pytest.mark.filterwarnings("ignore")
def test_case_37_values_change_during_the_fit(loss, form, value):
    """Not supported, and documented so; but no crash, no hang and no false claim of success."""
    given, rng = FORMS[form](np.tile(X, (20, 1))), np.random.default_rng(1)
    data = given.data if sparse.issparse(given) else given
    began, done = threading.Event(), threading.Event()

    def mutate():
        while not done.is_set():
            data[...] = rng.standard_normal(data.shape) if value is None else value
            began.set()

    thread = threading.Thread(target=mutate)
    start = lambda record: [thread.ident or thread.start(), began.wait(10)]  # noqa: E731
    model, y = make(loss, tol=1e-12, max_epochs=200, callback=start)
    try:
        certificate = model.fit(given, np.tile(y, 20)).certificate_
    finally:
        done.set()
        thread.join()
    claimed = certificate.stop_reason == "converged" or certificate.relative_gap < 1e-9
    assert not claimed or (value is None and np.isfinite(model.coef_).all())


@pytest.mark.parametrize("names", [["no", "yes"], [False, True], [-7, -3], [2.0, 5.0]], ids=str)
def test_case_41_labels_are_mapped(names):
    (model, y), names = make("logistic"), np.array(names)
    plain = clone(model).fit(X, y)
    same_bits(model.fit(X, names[(y > 0).astype(int)]), plain)
    np.testing.assert_array_equal(model.classes_, names, strict=True)
    np.testing.assert_array_equal(model.predict(X), names[(plain.predict(X) > 0).astype(int)])


def test_cases_23_45_classes_without_weight_too_many_classes(monkeypatch):
    model, y = make("logistic")[0], np.repeat(np.arange(100_000), 2)
    monkeypatch.setattr("zerogap.estimators.outputs.free_memory", lambda: 1e6)
    refused(model, np.ones((len(y), 1)), y, match="100000 classes.* GB")
    y = np.where(np.arange(N) % 4 == 0, 7, LABELS)
    assert model.fit(X, y).certificate_.relative_gap <= TOL
    rest = clone(model).fit(X[y != 7], y[y != 7])
    np.testing.assert_array_equal(model.fit(X, y, 1.0 * (y != 7)).predict(X), rest.predict(X))


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("seed", [0, 2**70, np.uint8(3), "default_rng", "RandomState", None])
def test_case_51_seeds(loss, seed):
    give = getattr(np.random, seed) if isinstance(seed, str) else lambda _: seed
    one, two, other = (fit(loss, X, random_state=s).coef_ for s in (give(0), give(0), 1))
    assert (one == two).all() == (seed is not None)
    assert (one != other).any()


@pytest.mark.parametrize("kind", [str, lambda name: LOSSES[name]()], ids=["name", "object"])
def test_case_52_loss_of_the_other_task(kind):
    """Targets are -1 and +1, so that nothing but the loss itself is wrong."""
    for loss, other in (("hinge", "squared"), ("squared", "hinge")):
        refused(make(loss)[0].set_params(loss=kind(other)), X, LABELS, match="loss")


@every_model
@pytest.mark.parametrize("name", zg.LinearClassifier().get_params())
def test_case_53_no_validation_before_fit(loss, name):
    model, y = make(loss)
    if name not in model.get_params():
        pytest.skip("not a parameter of this estimator")
    for bad in (type(model)(**{name: "nonsense"}), model.set_params(**{name: "nonsense"})):
        copy = clone(bad)
        assert copy.get_params()[name] == "nonsense"
        if name not in ("fit_intercept", "warm_start", "verbose", "n_jobs", "checkpoint"):
            refused(copy, X, y, match=name)


@pytest.mark.parametrize("kind", [np.array, list, pd.Series], ids=["array", "list", "Series"])
def test_case_04_text_is_no_target_of_a_regressor(kind):
    y = kind(["1.5"] * AT + ["many"] * (N - AT))
    refused(make("squared")[0], X, y, match="^y holds text, '1.5' at position 0")
