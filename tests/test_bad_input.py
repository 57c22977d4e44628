"""Cases 1 to 53 of the fault catalogue: bad input is refused by name, the rest solved with a proof.

What counts as solved is decided here, not by the library: `certified` recomputes primal and dual
objective from the published coefficients in extended precision.
"""

import subprocess
import sys
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError

import zerogap as zg
from zerogap.losses import LOSSES

pytestmark = pytest.mark.timeout(60)

N, D, LAM, TOL, AT = 40, 3, 0.05, 1e-8, 5  # AT: the row that is made bad
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D)).astype(np.float32).astype(np.float64)  # exact in both types
VALUES = X @ [1.0, -2.0, 0.5] + 0.4 + RNG.standard_normal(N)
LABELS = np.where(VALUES > 0.2, 1, -1)
WEIGHTS = RNG.integers(1, 4, N).astype(float)
Classifier, Regressor = zg.LinearClassifier, zg.LinearRegressor
TARGET = {Classifier: LABELS, Regressor: VALUES}
FORMS = {
    "dense64": lambda X: np.array(X, np.float64),
    "dense32": lambda X: np.array(X, np.float32),
    "csr64": lambda X: sparse.csr_array(np.asarray(X, np.float64)),
    "csr32": lambda X: sparse.csr_array(np.asarray(X, np.float32)),
}
MATHS = {  # phi(z, y) and -phi*(-a, y), written independently of the library
    "hinge": (lambda z, y: np.maximum(0, 1 - y * z), lambda a, y: a * y),
    "logistic": (lambda z, y: np.logaddexp(0, -y * z), lambda a, y: entropy(a * y)),
    "squared": (lambda z, y: (z - y) ** 2 / 2, lambda a, y: a * y - a * a / 2),
}
both = pytest.mark.parametrize("cls", TARGET, ids=["classifier", "regressor"])
dense_and_csr = pytest.mark.parametrize("form", ["dense64", "csr64"])
every_form = pytest.mark.parametrize("form", FORMS)
three_losses = pytest.mark.parametrize("loss", MATHS)


def entropy(p):
    return -sum(q * np.log(np.where(q > 0, q, 1)) for q in (p, 1 - p))


def make(cls, **params):
    loss = "logistic" if cls is Classifier else "squared"
    return cls(**({"loss": loss, "lam": LAM, "tol": TOL, "random_state": 0} | params))


def of_loss(loss, **params):
    cls = Classifier if LOSSES[loss].task == "classification" else Regressor
    return make(cls, loss=loss, **params), TARGET[cls]


def changed(values, value, at=AT):
    values = np.array(values, dtype=np.result_type(values, type(value)))
    values[at] = value
    return values


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
    coef, alpha = np.ravel(model.coef_), np.ravel(model.dual_coef_).astype(np.longdouble)
    assert np.isfinite(coef).all()
    assert np.isfinite(model.intercept_).all()
    if model.loss != "squared":
        assert ((alpha * y >= 0) & (alpha * y <= 1)).all()
    if model.fit_intercept:
        assert abs(share @ alpha) <= 1e-12 * (share @ abs(alpha))
    value, bound = MATHS[model.loss]
    primal = share @ value(X @ coef + model.intercept_, y) + lam / 2 * (coef @ coef.astype(X.dtype))
    u = X.T @ (share * alpha) / lam
    dual = share @ bound(alpha, y) - lam / 2 * (u @ u)
    assert model.certificate_.primal == pytest.approx(float(primal), rel=1e-10)
    assert abs(model.certificate_.gap - (primal - dual)) <= 1e-10 * abs(primal)
    assert tol is None or model.certificate_.gap <= tol * abs(primal)
    return model


def attempt(model, X, y, refusal):
    """Fit what may be out of reach: refused, or honest and with a warning if not converged."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, y)
        except ValueError as error:
            assert refusal in str(error)  # noqa: PT017
            assert not hasattr(model, "coef_")
            return
    certified(model, X, y, tol=None)
    reached = model.certificate_.relative_gap <= model.tol
    assert [w.category for w in caught] == ([] if reached else [ConvergenceWarning])


def same_bits(one, two):
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)


def same_to_the_gap(one, two, lam, other_lam=None):
    """Each is within sqrt(2 gap / lam) of its optimum, by strong convexity: so is the other."""
    radius = np.sqrt(2 * one.certificate_.gap / lam)
    radius += np.sqrt(2 * two.certificate_.gap / (other_lam or lam))
    assert radius < 1e-2  # or the comparison would say little
    assert np.linalg.norm(one.coef_ - two.coef_) <= radius + 1e-12


def broken(**parts):
    """X as CSR, with some of its arrays replaced by a function of them."""
    matrix = sparse.csr_array(X)
    for name, change in parts.items():
        setattr(matrix, name, change(getattr(matrix, name)))
    return matrix


def not_canonical(how):
    """X as CSR with unsorted or duplicate entries, or with unused room at its end."""
    data, indices = X.ravel(), np.tile(np.arange(D, dtype=np.int32), N)
    rows = np.arange(0, X.size + 1, D, dtype=np.int32)
    if how == "unsorted":
        data, indices = X[:, ::-1].ravel(), indices[::-1].copy()
    elif how == "spare":  # as SciPy leaves it now and then: what is there is not data
        data, indices = np.append(data, [np.nan, 1.0]), np.append(indices, np.int32([9, -9]))
    else:
        data, indices, rows = np.repeat(data / 2, 2), np.repeat(indices, 2), 2 * rows
    matrix = broken(data=lambda _: data, indices=lambda _: indices, indptr=lambda _: rows)
    if how == "stale":  # duplicates written into a matrix that SciPy takes for canonical
        matrix.has_canonical_format = True
    return matrix


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


STRINGS = np.full((N, D), "1.5")
LAYOUTS = {
    "read-only": read_only,
    "strided": lambda a: np.repeat(a, 2, axis=0)[::2],
    "reversed": lambda a: a[::-1].copy()[::-1],
    "fortran": np.asfortranarray,
    "byte-swapped": lambda a: a.astype(a.dtype.newbyteorder()),
}


def refusals():
    """Yield case, what the message says, and what differs from a good fit (y as a function)."""
    for name, form in FORMS.items():
        for value, kind in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
            case = 3 if "csr" in name else 1 if kind == "NaN" else 2
            message = f"X contains {kind} at row {AT}, column 1"
            yield f"{case:02}-{value}-{name}", message, {"X": form(changed(X, value, (AT, 1)))}
        signs = changed(changed(X, np.inf, (AT, 1)), -np.inf, (AT + 1, 0))
        yield f"03-both-infinities-{name}", f"infinity at row {AT}, column 1", {"X": form(signs)}
        yield f"24-no-rows-{name}", r"0 sample\(s\)", {"X": form(X[:0]), "y": lambda y: y[:0]}
        yield f"26-no-columns-{name}", r"0 feature\(s\)", {"X": form(X[:, :0])}
        for n in (N - 1, N + 1):
            match, y = rf"\b{N}\b.*\b{n}\b", lambda y, n=n: np.resize(y, n)
            yield f"30-{n}-targets-{name}", match, {"X": form(X), "y": y}
    for value, kind in ((np.nan, "NaN"), (np.inf, "infinity")):
        match = f"y contains {kind}.*position {AT}"
        yield f"04-{kind}", match, {"y": lambda y, value=value: changed(y * 1.0, value)}
    for scale in (1e200, 1e307):
        for name in ("dense64", "csr64"):
            yield f"05-{scale}-{name}", "scale the features", {"X": FORMS[name](X * scale)}
    for name, bad in {
        "longdouble": X.astype(np.longdouble),
        "longdouble-csr": sparse.csr_array(X.astype(np.longdouble)),
        "complex": X + 1j,
        "complex-csr": sparse.csr_array(X + 1j),
        "datetime": np.full((N, D), np.datetime64("2020-01-01")),
        "timedelta": np.full((N, D), np.timedelta64(1, "s")),
        "structured": np.zeros((N, D), dtype=[("a", float), ("b", float)]),
        "strings": STRINGS,
        "bytes": STRINGS.astype("S"),
        "list-of-strings": STRINGS.tolist(),
        "strings-as-objects": STRINGS.astype(object),
        "words-as-objects": np.full((N, D), "word", dtype=object),
        "frame-of-strings": pd.DataFrame(STRINGS),
    }.items():
        yield f"16-{name}", r"\bX\b|Complex data", {"X": bad}
    masked = np.arange(N) == AT
    yield "17-masked-X", "X .*masked", {"X": np.ma.array(X, mask=np.tile(masked[:, None], D))}
    yield "17-masked-y", "y .*masked", {"y": lambda y: np.ma.array(y, mask=masked)}
    yield "17-masked-w", "sample_weight .*masked", {"w": np.ma.array(WEIGHTS, mask=masked)}
    for dtype in ("Float64", "Int64", "boolean"):
        frame = pd.DataFrame(X > 0).astype(dtype)
        frame.iloc[AT, 1] = pd.NA
        yield f"17-X-{dtype}", f"X contains NaN at row {AT}, column 1", {"X": frame}
    na = {"y": lambda y: pd.Series(np.round(y)).astype("Int64").where(~masked)}
    yield "17-y-Int64", "y contains NaN", na
    yield "18-zero-weights", "(?i)sample.weight", {"w": np.zeros(N)}
    for value in (-1.0, np.nan, np.inf, -np.inf):
        case, match = 19 if value == -1 else 20, f"sample_weight.* position {AT}"
        yield f"{case}-{value}", match, {"w": changed(WEIGHTS, value)}
    for value in (1e300, 1.7e308, 5e-324):
        yield f"21-{value}", "sample_weight", {"w": np.full(N, value), "lam": None}
    for shape in ((N - 1,), (N + 1,), (N, 1), (1, N), (N, 2)):
        yield f"22-{shape}", "(?i)sample.weight", {"w": np.ones(shape)}
    for name, bad in {"1-d": X[:, 0], "csr": sparse.coo_array(X[:, 0]), "0-d": 3.0}.items():
        yield f"28-{name}", r"reshape\(-1, 1\)", {"X": bad}
    yield "29-3-d", "dim", {"X": X[:, :, None]}
    yield "29-3-d-sparse", "dim", {"X": sparse.coo_array(X[:, :, None])}
    for value in (D, 10**9, -1):
        for index in (np.int32, np.int64):
            column = {"indices": lambda a, i=index, v=value: changed(a, v, AT * D).astype(i)}
            bad = broken(**column, indptr=lambda p, i=index: p.astype(i))
            match = f"X .*row {AT} has column index {value}"
            yield f"31-{value}-{index.__name__}", match, {"X": bad}
    for name, change in {
        "falls": lambda p: changed(p, p[-1]),
        "negative": lambda p: changed(p, -1),
        "begins-late": lambda p: changed(p, 1, 0),
        "ends-late": lambda p: changed(p, p[-1] + 1, -1),
        "too-short": lambda p: p[:-1],
        "too-long": lambda p: np.append(p, p[-1]),
        "empty": lambda p: p[:0],
    }.items():
        bad = broken(indptr=lambda p, change=change: change(p).astype(np.int32))
        yield f"32-{name}", "X .*indptr", {"X": bad}
    yield "32-few-values", "X .*indptr", {"X": broken(data=lambda a: a[:-1])}
    yield "32-few-indices", "X .*indptr", {"X": broken(indices=lambda a: a[:-1])}
    for value in ("a", None):
        mixed = lambda y, value=value: [value, *y.tolist()[1:]]  # noqa: E731
        yield f"42-{value}-list", r"\by\b", {"y": mixed}
        objects = {"y": lambda y, mixed=mixed: np.array(mixed(y), dtype=object)}
        yield f"42-{value}-objects", r"\by\b", objects
    yield "42-no-y", r"\by\b", {"y": lambda y: None}
    yield "44-two-columns", r"\by\b", {"y": lambda y: np.column_stack([y, y])}
    for lam in (0, 0.0, -1.0, np.nan, np.inf, "1", True, [1.0], 1j):
        yield f"46-{lam!r}", "lam must be", {"lam": lam}
    for tol in (-1, np.nan, np.inf, "1", None, True):
        yield f"49-{tol!r}", "tol must be", {"tol": tol}
    for epochs in (0, -1, 2.5, 10.0, np.inf, np.nan, "5", None, True):
        yield f"50-{epochs!r}", "max_epochs must be an integer >= 1", {"max_epochs": epochs}
    for seed in (-1, 1.5, "a", True, [1], np.nan):
        yield f"51-{seed!r}", "random_state must be", {"random_state": seed}
    for loss in (None, 3, zg.Hinge):
        yield f"52-loss-{loss}", "loss must be", {"loss": loss}
    for solver in ("nonsense", "SDCA", None, 3, zg.SDCA):
        yield f"52-solver-{solver}", "unknown solver.*auto.*sdca", {"solver": solver}


REFUSALS = {case: rest for case, *rest in refusals()}


@both
@pytest.mark.parametrize("case", REFUSALS)
def test_refused_case(cls, case):
    match, given = REFUSALS[case]
    given = dict(given)
    X_, w, y = given.pop("X", X), given.pop("w", None), given.pop("y", lambda y: y)(TARGET[cls])
    refused(make(cls, **given), X_, y, w, match=match)
    if case[:2] in ("01", "02", "03", "16", "17", "31", "32") and X_ is not X:
        model = make(cls).fit(X, TARGET[cls])
        with pytest.raises(ValueError, match=match):
            model.predict(X_)


def equals():
    """Yield case, a matrix in an unusual form, and the plain form of the same matrix."""
    huge = np.random.default_rng(1).integers(-(2**62), 2**62, (N, D))
    yield "13-int64", huge, huge.astype(float)
    yield "13-int64-csr", sparse.csr_array(huge), sparse.csr_array(huge.astype(float))
    for dtype in ("bool", "u1", "i1", "u8", "f2"):
        small = np.abs(10 * X).astype(dtype)
        yield f"14-{dtype}", small, small.astype(float)
        if dtype != "f2":  # which SciPy does not have
            yield f"14-{dtype}-csr", sparse.csr_array(small), sparse.csr_array(small.astype(float))
    yield "14-list", X.tolist(), X
    yield "16-objects", X.astype(object), X
    for how in ("unsorted", "duplicates", "stale", "spare"):
        yield f"33-{how}", not_canonical(how), sparse.csr_array(X)
    positive = X * (X > 0)
    for kind in (sparse.csr_array, sparse.csr_matrix):
        for form in ("csc", "coo", "bsr", "dia", "lil", "dok"):
            yield f"34-{form}-{kind.__name__}", kind(positive).asformat(form), kind(positive)
    for name, form in FORMS.items():
        if "csr" in name:
            wide = form(X)
            wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
            yield f"35-{name}", wide, form(X)


EQUALS = {case: pair for case, *pair in equals()}


@both
@pytest.mark.parametrize("case", EQUALS)
def test_same_model_case(cls, case):
    given, plain = EQUALS[case]
    lam = LAM * 4.0**62 if case.startswith("13") else LAM
    is_array = lambda a: isinstance(a, np.ndarray)  # noqa: E731
    arrays = [a for a in [given, *getattr(given, "__dict__", {}).values()] if is_array(a)]
    before = [a.tobytes() for a in arrays]
    model = make(cls, lam=lam).fit(given, TARGET[cls])
    certified(model, plain, TARGET[cls])
    same_bits(model, make(cls, lam=lam).fit(plain, TARGET[cls]))
    np.testing.assert_array_equal(model.predict(given), model.predict(plain))
    assert [a.tobytes() for a in arrays] == before


@both
@pytest.mark.parametrize("value", [{}, 1 + 2j, pd.Timestamp(0), "a"], ids=repr)
def test_case_16_objects(cls, value):
    """scikit-learn's own checks demand a TypeError for some of these."""
    bad = X.astype(object)
    bad[AT, 1] = value
    message = "number|could not convert"
    refused(make(cls), bad, TARGET[cls], match=message, error=(TypeError, ValueError))


@both
@every_form
@pytest.mark.parametrize("layout", LAYOUTS)
def test_case_36_layouts(cls, form, layout):
    change = LAYOUTS[layout]
    given, y, w = FORMS[form](X), change(TARGET[cls]), change(WEIGHTS)
    expected = make(cls).fit(given.copy(), TARGET[cls], WEIGHTS)
    if sparse.issparse(given):
        for name in ("data", "indices", "indptr"):
            setattr(given, name, change(getattr(given, name)))
        arrays = [given.data, given.indices, given.indptr, y, w]
    else:
        given = change(given)
        arrays = [given, y, w]
    before = [(a.tobytes(), a.dtype, a.strides, a.flags.writeable) for a in arrays]
    same_bits(certified(make(cls).fit(given, y, w), X, TARGET[cls], WEIGHTS), expected)
    assert [(a.tobytes(), a.dtype, a.strides, a.flags.writeable) for a in arrays] == before


@both
def test_cases_01_39_refused_fit_leaves_nothing(cls):
    model = make(cls)
    before = set(vars(model))
    with pytest.raises(NotFittedError):
        model.predict(X)
    refused(model, changed(X, np.nan, (AT, 1)), TARGET[cls], match="NaN")
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert set(vars(model)) == before


def test_case_05_overflowing_targets():
    """|y|^2 overflows as well: refused, or honest, never "converged" at infinity."""
    attempt(make(Regressor, max_epochs=50), X, 1e200 * VALUES, refusal="y")


@both
@every_form
@pytest.mark.parametrize("columns", [D, 1])
@pytest.mark.parametrize("case", ["06", "07"])
def test_cases_06_07_tiny_or_denormal_features(cls, form, columns, case):
    tiny = X.copy()
    smallest = np.finfo(form[-2:] == "32" and np.float32 or np.float64).smallest_subnormal
    tiny[:, :columns] *= 1e-200 if case == "06" else 0
    tiny[:, :columns] += 0 if case == "06" else float(smallest)
    tiny = FORMS[form](tiny)
    certified(make(cls).fit(tiny, TARGET[cls]), tiny, TARGET[cls])


@both
@every_form
def test_case_08_one_huge_column(cls, form):
    attempt(make(cls, max_epochs=100), FORMS[form](X * [1, 1e12, 1]), TARGET[cls], refusal="never")


@three_losses
@every_form
def test_case_09_zero_rows_add_their_constant_loss(loss, form):
    k = 7
    one, y = of_loss(loss, fit_intercept=False)
    two, _ = of_loss(loss, fit_intercept=False, lam=LAM * N / (N + k))
    one.fit(FORMS[form](X), y)
    more = FORMS[form](np.vstack([X, np.zeros((k, D))])), np.append(y, y[:k])
    certified(two.fit(*more), *more)
    same_to_the_gap(one, two, LAM, two.lam)
    total = N * one.certificate_.primal + MATHS[loss][0](0.0, y[:k]).sum()
    assert (N + k) * two.certificate_.primal == pytest.approx(total, rel=2 * TOL)


@dense_and_csr
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_case_10_all_zero_X(loss, intercept, form):
    model, y = of_loss(loss, fit_intercept=intercept)
    certificate = model.fit(FORMS[form](0 * X), y).certificate_
    assert not model.coef_.any()
    assert certificate.epochs <= 1
    assert 0 <= certificate.gap <= 1e-9 * certificate.primal


@three_losses
@every_form
def test_cases_11_23_weights_are_counts(loss, form):
    """Rows repeated, or removed where the weight is zero; each with opposite targets as well."""
    counts = np.random.default_rng(2).integers(0, 4, 2 * N)
    model, y = of_loss(loss, fit_intercept=loss != "hinge", lam=None)
    stacked, y = np.vstack([X, X]), np.append(y, -y)
    weighted = clone(model).fit(FORMS[form](stacked), y, counts)
    copies = np.repeat(stacked, counts, axis=0), np.repeat(y, counts)
    repeated = model.fit(FORMS[form](copies[0]), copies[1])
    certified(repeated, *copies)
    certified(weighted, stacked, y, counts)
    same_to_the_gap(weighted, repeated, 1 / counts.sum())


def test_case_23_zero_weights_remove_a_class():
    y = np.where(np.arange(N) % 4 == 0, 7, LABELS)
    model = make(Classifier).fit(X, y, 1.0 * (y != 7))
    rest = make(Classifier).fit(X[y != 7], y[y != 7])
    np.testing.assert_array_equal(model.predict(X), rest.predict(X))


@dense_and_csr
@pytest.mark.parametrize("loss", LOSSES)
def test_cases_12_27_constant_column_or_one_column(loss, form):
    """Every loss reaches the default gap within the default budget: a warning is an error here."""
    for data in (np.column_stack([X, np.full(N, 3.0)]), X[:, :1]):
        model, y = of_loss(loss, tol=1e-3)
        certificate = model.fit(FORMS[form](data), y).certificate_
        assert certificate.gap <= 1e-3 * certificate.primal
        assert np.isfinite(model.coef_).all()
        if data.shape[1] > 1:  # the free intercept does it all: no weight at the optimum
            assert abs(model.coef_.flat[-1]) <= np.sqrt(2 * certificate.gap / LAM)


@both
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("scale", [1.0, 2.0**100, 2.0**-100])
def test_case_15_float32_has_the_gap_of_float64(cls, storage, scale):
    """The scales suit float32, their squares do not: those must be taken in float64."""
    single, double = (
        make(cls, lam=LAM * scale**2).fit(FORMS[f"{storage}{bits}"](X * scale), TARGET[cls])
        for bits in (32, 64)
    )
    certified(single, X * scale, TARGET[cls])
    assert single.certificate_.primal == pytest.approx(double.certificate_.primal, rel=1e-6)
    assert single.certificate_.gap == pytest.approx(double.certificate_.gap, rel=1e-6)


@both
@pytest.mark.parametrize("value", [1e300, 1e-300])
def test_case_21_extreme_weights(cls, value):
    y, weights, mixed = TARGET[cls], value * WEIGHTS, changed(WEIGHTS, value)
    model = certified(make(cls).fit(X, y, weights), X, y, weights)
    same_to_the_gap(model, make(cls).fit(X, y, WEIGHTS), LAM)
    model = certified(make(cls).fit(X, y, mixed), X, y, mixed)
    if value < 1:
        certified(make(cls, lam=None).fit(X, y, weights), X, y, weights)
        rest = np.arange(N) != AT
        same_to_the_gap(model, make(cls).fit(X[rest], y[rest], WEIGHTS[rest]), LAM)


@dense_and_csr
def test_case_25_one_row(form):
    refused(make(Classifier), FORMS[form](X[:1]), LABELS[:1], match="class")
    for intercept in (True, False):
        model = make(Regressor, fit_intercept=intercept).fit(FORMS[form](X[:1]), VALUES[:1])
        certified(model, X[:1], VALUES[:1])


@pytest.mark.parametrize("form", ["csc", "bsr", "coo"])
@pytest.mark.parametrize("value", [10**9, -(10**8)])
def test_case_31_index_out_of_range_in_other_formats(form, value):
    """In a process of its own: SciPy's conversions follow a wrong index out of bounds."""
    code = f"""
import numpy as np, zerogap as zg
from scipy import sparse
X = sparse.csr_array(np.eye(40)).asformat({form!r})
(X.row if {form!r} == "coo" else X.indices)[3] = {value}
try:
    zg.LinearRegressor().fit(X, np.arange(40.0))
except ValueError as error:
    print("refused:", error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:300]
    assert done.stdout.startswith("refused:")


@both
@dense_and_csr
@pytest.mark.parametrize("value", [None, np.nan], ids=["noise", "nan"])
def test_case_37_values_change_during_the_fit(cls, form, value):
    """Not supported, and documented so; but no crash, no hang and no claim of success."""
    given, rng = FORMS[form](np.tile(X, (20, 1))), np.random.default_rng(1)
    data = given.data if sparse.issparse(given) else given
    began, done = threading.Event(), threading.Event()

    def mutate():
        while not done.is_set():
            data[...] = rng.standard_normal(data.shape) if value is None else value
            began.set()

    def callback(record):
        if not thread.ident:
            thread.start()
        began.wait(10)

    thread = threading.Thread(target=mutate)
    model = make(cls, tol=1e-12, max_epochs=200, callback=callback)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(given, np.tile(TARGET[cls], 20))
    finally:
        done.set()
        thread.join()
    assert began.is_set()
    assert model.certificate_.stop_reason != "converged"
    assert not model.certificate_.relative_gap <= 1e-12


@both
@every_form
@pytest.mark.parametrize("d", [D - 1, D + 1])
def test_case_38_predict_with_wrong_number_of_columns(cls, form, d):
    model = make(cls).fit(FORMS[form](X), TARGET[cls])
    with pytest.raises(ValueError, match=rf"X has {d} features.* {D} features"):
        model.predict(FORMS[form](np.ones((4, d))))


@dense_and_csr
def test_cases_40_43_labels_that_are_not_classes(form):
    given = FORMS[form](X)
    refused(make(Classifier), given, np.ones(N), match="two classes.* one class")
    refused(make(Classifier), given, LABELS, LABELS > 0, match="two classes.* positive weight")
    refused(make(Classifier), given, VALUES, match="continuous")


@pytest.mark.parametrize(
    "names",
    [
        ["no", "yes"],
        [False, True],
        [-7, -3],
        [2.0, 5.0],
        np.uint8([0, 255]),
        np.array(["a", "b"], "O"),
    ],
    ids=str,
)
def test_case_41_labels_are_mapped(names):
    names = np.asarray(names)
    model = make(Classifier).fit(X, names[(LABELS > 0).astype(int)])
    plain = make(Classifier).fit(X, LABELS)
    np.testing.assert_array_equal(model.classes_, names)
    assert model.classes_.dtype == names.dtype
    same_bits(model, plain)
    np.testing.assert_array_equal(model.predict(X), names[(plain.predict(X) > 0).astype(int)])


@both
def test_case_44_column_of_targets(cls):
    with pytest.warns(DataConversionWarning, match="1d array"):
        model = make(cls).fit(X, TARGET[cls][:, None])
    same_bits(model, make(cls).fit(X, TARGET[cls]))


def test_case_45_too_many_classes(monkeypatch):
    scarce = lambda free: monkeypatch.setattr("zerogap.estimators.free_memory", lambda: free)  # noqa: E731
    y = np.repeat(np.arange(100_000), 2)
    scarce(16e9)
    refused(make(Classifier), np.ones((len(y), 1)), y, match="100000 classes.* 16.0 GB")
    scarce(1e3)
    refused(make(Classifier), X, np.arange(N) % 4, match="4 classes")
    scarce(1e6)
    assert make(Classifier).fit(X, np.arange(N) % 4).certificate_.relative_gap <= TOL


@both
def test_case_46_default_lam_is_one_over_the_sum_of_weights(cls):
    one, two = (
        make(cls, lam=lam).fit(X, TARGET[cls], WEIGHTS) for lam in (None, 1 / WEIGHTS.sum())
    )
    same_bits(one, two)


@three_losses
@dense_and_csr
@pytest.mark.parametrize("lam", [5e-324, 1e-300, 1e-290, 1e-280, 1e-150, 1e-50, 1e-20])
def test_case_47_tiny_lam(loss, form, lam):
    model, y = of_loss(loss, lam=lam, max_epochs=30)
    attempt(model, FORMS[form](X), y, refusal="lam=")


@three_losses
@dense_and_csr
@pytest.mark.parametrize("lam", [1e300, 1.7e308])
def test_case_48_huge_lam(loss, form, lam):
    model, y = of_loss(loss, lam=lam)
    certified(model.fit(FORMS[form](X), y), X, y)
    assert np.abs(model.coef_).max() < 1e-298


@both
@dense_and_csr
def test_case_49_tol_zero(cls, form):
    model = make(cls, tol=0, max_epochs=7)
    with pytest.warns(ConvergenceWarning, match=r"max_epochs.* gap of \d"):
        model.fit(FORMS[form](X), TARGET[cls])
    assert model.n_iter_ == 7
    assert certified(model, X, TARGET[cls], tol=None).certificate_.gap > 0


@both
@pytest.mark.parametrize(
    "seed", [0, 2**70, np.uint8(3), "Generator", "RandomState", None], ids=repr
)
def test_case_51_seeds(cls, seed):
    kind = {"Generator": np.random.default_rng, "RandomState": np.random.RandomState}.get(seed)
    one, two = (make(cls, random_state=kind(0) if kind else seed) for _ in "ab")
    certified(one.fit(X, TARGET[cls]), X, TARGET[cls])
    bits = one.coef_.tobytes()
    assert (bits == two.fit(X, TARGET[cls]).coef_.tobytes()) == (seed is not None)
    assert bits != make(cls, random_state=1).fit(X, TARGET[cls]).coef_.tobytes()


@pytest.mark.parametrize("kind", ["name", "object"])
def test_case_52_loss_of_the_other_task(kind):
    """Targets are -1 and +1, so that nothing but the loss itself is wrong."""
    for cls, other, names in (
        (Classifier, "squared", "hinge.*logistic"),
        (Regressor, "hinge", "squared.*huber"),
    ):
        refused(make(cls, loss="nonsense"), X, LABELS, match=f"loss.*{names}")
        loss = other if kind == "name" else LOSSES[other]()
        refused(make(cls, loss=loss), X, LABELS, match="loss")


@both
@pytest.mark.parametrize("name", Classifier().get_params())
def test_case_53_no_validation_before_fit(cls, name):
    if name not in cls().get_params():
        pytest.skip("not a parameter of this estimator")
    for model in (cls(**{name: "nonsense"}), cls().set_params(**{name: "nonsense"})):
        copy = clone(model)
        assert copy.get_params()[name] == "nonsense"
        assert "nonsense" in repr(copy)
        if name not in ("fit_intercept", "warm_start", "verbose", "n_jobs"):  # true is true
            refused(copy, X, TARGET[cls], match=name)
