"""The bridge to Numba: cached across processes, aware of edits, equal to pure Python."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import zerogap as zg
from problems import make_problem
from zerogap.kernels.jit import Struct, kernel
from zerogap.kernels.signals import undisturbed
from zerogap.losses import LOSSES

TESTS = str(Path(__file__).parent)


BEGUN = """
import os, sys
import numba, scipy.sparse, scipy.special  # half of a start; nothing of zerogap

for line in sys.stdin:
    cache, file, answer, errors = eval(line)
    if (child := os.fork()) == 0:
        numba.config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = cache
        sys.stdout, sys.stderr = open(answer, "w"), open(errors, "w")
        code = 1
        try:
            exec(compile(open(file).read(), file, "exec"), {"__name__": "__main__"})
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def run(code, cache, **environment):
    """Run Python code in a process of its own and return the JSON it prints last."""
    path = os.pathsep.join([TESTS, *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(cache), **environment}
    code = textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def begun():
    """A process that has imported Numba, and forks one for each request."""
    path = os.pathsep.join([TESTS, *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", BEGUN]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=variables, **pipes) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def run_forked(begun, tmp_path):
    """`run` by a process that has imported Numba: that is most of what a start takes."""
    if sys.platform != "linux":  # forks of macOS may not use its frameworks
        return run
    files = [str(tmp_path / name) for name in ("code.py", "answer", "errors")]

    def forked(code, cache):
        Path(files[0]).write_text(textwrap.dedent(code))
        print([str(cache), *files], file=begun.stdin, flush=True)
        assert begun.stdout.readline() == "0\n", Path(files[2]).read_text()
        return json.loads(Path(files[1]).read_text().splitlines()[-1])

    return forked


FIT = """
    import json, numpy as np, zerogap as zg
    from problems import make_problem
    zg.solve(make_problem("hinge", "csr"), zg.SDCA(), random_state=0)
    import zerogap.problem, zerogap.rows, zerogap.solvers.sdca
    kernels = [k for m in (zerogap.problem, zerogap.rows, zerogap.solvers.sdca)
               for k in vars(m).values() if hasattr(k, "stats")]
    print(json.dumps([sum(sum(k.stats.cache_misses.values()) for k in kernels),
                      sum(sum(k.stats.cache_hits.values()) for k in kernels)]))
"""


def test_second_process_compiles_nothing(tmp_path, run_forked):
    misses, _ = run_forked(FIT, tmp_path)
    assert misses > 0
    for first in (
        "",
        "    import zerogap.leave_one_out, zerogap.dask\n",
    ):  # whatever was imported before
        misses, hits = run_forked(first + FIT, tmp_path)
        assert misses == 0
        assert hits > 0


def test_import_brings_neither_numba_nor_scikit_learn(tmp_path):
    heavy = run(
        """
        import sys, json, zerogap
        heavy = {"numba", "sklearn", "scipy", "pandas", "numpy"}
        print(json.dumps(sorted(heavy & set(sys.modules))))
        """,
        tmp_path,
    )
    assert heavy == []


PURE = """
    import json, numpy as np, zerogap as zg
    from problems import make_problem
    from zerogap.losses import LOSSES
    answers = {}
    for loss in LOSSES:
        for storage in ("dense", "csr"):
            for l1_ratio in (0.0, 0.3):
                p = make_problem(loss, storage, np.float32, True, True, l1_ratio, n=20, d=4)
                r = zg.solve(p, zg.SDCA(), tol=0.0, max_epochs=4, random_state=0)
                numbers = [*r.w, r.b, r.certificate.primal, r.certificate.gap]
                answers[f"{loss} {storage} {l1_ratio}"] = numbers
    print(json.dumps(answers))
"""


def test_compiled_equals_pure_python(tmp_path):
    python = run(PURE, tmp_path, NUMBA_DISABLE_JIT="1")
    for loss in LOSSES:
        for storage in ("dense", "csr"):
            for l1_ratio in (0.0, 0.3):
                p = make_problem(loss, storage, np.float32, True, True, l1_ratio, n=20, d=4)
                r = zg.solve(p, zg.SDCA(), tol=0.0, max_epochs=4, random_state=0)
                compiled = [*r.w, r.b, r.certificate.primal, r.certificate.gap]
                np.testing.assert_allclose(
                    compiled, python[f"{loss} {storage} {l1_ratio}"], rtol=1e-9, atol=1e-11
                )


OWN_LOSS = """
from dataclasses import dataclass
import zerogap as zg

@dataclass(frozen=True)
class Scaled(zg.Squared):
    def value(self, z, y):
        return FACTOR * 0.5 * (z - y) * (z - y)
"""
USE_OWN_LOSS = """
    import json, sys
    sys.path.insert(0, {folder!r})
    from own import Scaled
    import zerogap as zg
    print(json.dumps(zg.Problem([[1.0]], [2.0], Scaled(), lam=1.0).primal([0.0])))
"""


def test_edited_loss_is_recompiled(tmp_path, run_forked):
    folder, cache = tmp_path / "code", tmp_path / "cache"
    folder.mkdir()
    code = USE_OWN_LOSS.format(folder=str(folder))
    for factor in ("1.0", "50.0"):
        (folder / "own.py").write_text(OWN_LOSS.replace("FACTOR", factor))
        assert run_forked(code, cache) == 2.0 * float(factor)


OWN_HELPER = """
from zerogap.kernels.jit import inlined

@inlined
def scaled(x):
    return FACTOR * x
"""
USE_OWN_HELPER = """
    import json, sys
    sys.path.insert(0, {folder!r})
    import numpy as np
    from own_kernel import total
    print(json.dumps(total(np.ones(3))))
"""
OWN_KERNEL = """
from own_helper import scaled
from zerogap.kernels.jit import kernel

@kernel
def total(x):
    out = 0.0
    for i in range(len(x)):
        out += scaled(x[i])
    return out
"""


def test_edited_helper_of_a_kernel_is_recompiled(tmp_path, run_forked):
    folder, cache = tmp_path / "code", tmp_path / "cache"
    folder.mkdir()
    (folder / "own_kernel.py").write_text(OWN_KERNEL)
    code = USE_OWN_HELPER.format(folder=str(folder))
    for factor in ("1.0", "50.0"):
        (folder / "own_helper.py").write_text(OWN_HELPER.replace("FACTOR", factor))
        assert run_forked(code, cache) == 3.0 * float(factor)


def test_another_script_s_loss_in_the_cache_disturbs_nobody(tmp_path, run_forked):
    """The index of a cached kernel names the classes of all its users, importable or not."""
    folder, cache = tmp_path / "code", tmp_path / "cache"
    folder.mkdir()
    (folder / "own.py").write_text(OWN_LOSS.replace("FACTOR", "3.0"))
    run_forked(USE_OWN_LOSS.format(folder=str(folder)), cache)
    plain = """
        import json, zerogap as zg
        print(json.dumps(zg.Problem([[1.0]], [2.0], "squared").primal([0.0])))
    """
    assert run_forked(plain, cache) == 2.0
    assert run_forked(plain, cache) == 2.0
    assert run_forked(USE_OWN_LOSS.format(folder=str(folder)), cache) == 6.0


FEW_KERNELS = """
import warnings, numpy as np, json
from zerogap.kernels.jit import kernel
from zerogap.rows import as_rows
from zerogap.rows.loops import sqnorms
out = np.empty(2)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    sqnorms(as_rows(np.array([[3.0, 4.0], [0.0, 1.0]])), 0, 2, out)
assert out.tolist() == [25.0, 1.0]
print(json.dumps([str(w.message) for w in seen if w.category is RuntimeWarning]))
"""


@pytest.fixture(scope="module")
def filled_cache(tmp_path_factory):
    cache = tmp_path_factory.mktemp("machine code")
    assert run(FEW_KERNELS, cache) == []
    return cache


@pytest.mark.parametrize("damage", ["truncated", "moved", "garbage"])
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_F3_damaged_caches_are_compiled_again(filled_cache, tmp_path, run_forked, damage, suffix):
    """Truncated files, or pickles of classes that are gone, cost a compilation and one line."""
    cache = tmp_path / "cache"
    shutil.copytree(filled_cache, cache)
    for file in cache.rglob(f"*{suffix}"):
        content = file.read_bytes()
        moved = content.replace(b"zerogap.kernels.jit", b"zerogap.kernels.gone"[:19])
        changed = {"truncated": content[: len(content) // 2], "moved": moved, "garbage": b"\0" * 99}
        file.write_bytes(changed[damage])
    said = run_forked(FEW_KERNELS, cache)
    assert len(said) <= 1
    assert all("compiling it again" in text for text in said)
    assert run_forked(FEW_KERNELS, cache) == []


def test_F7_two_processes_compile_at_once(tmp_path):
    command = [sys.executable, "-c", FEW_KERNELS]
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    both = [subprocess.Popen(command, env=variables, stdout=subprocess.PIPE) for _ in range(2)]
    assert [json.loads(process.communicate()[0]) for process in both] == [[], []]
    assert run(FEW_KERNELS, tmp_path) == []


def test_unwritable_cache_still_fits(tmp_path):
    result = run(
        """
        import json, zerogap as zg
        print(json.dumps(zg.Problem([[1.0]], [2.0], "squared").primal([0.0])))
        """,
        tmp_path,
        ZEROGAP_NUMBA_CACHE="0",
    )
    assert result == 2.0
    assert not list(tmp_path.rglob("*.nbi"))


def test_classes_of_numba_in_other_packages_still_compile():
    """Their constructors are code without a module; watching the compiler must not mind."""
    from numba import float64
    from numba.experimental import jitclass

    @jitclass([("value", float64)])
    class Other:
        def __init__(self, value):
            self.value = value

    assert Other(2.0).value == 2.0


def test_first_fit_compiles_little_and_says_so(tmp_path):
    """Nothing of texts and shapes in error messages; one word why it takes long, one warning."""
    compiled, warned, said = run(
        """
        import contextlib, io, json, sys, warnings, numpy as np
        import numba.core.caching
        numba.core.caching.CacheImpl._locator_classes = []  # no folder can be written
        from numba.core import event

        class Names(event.Listener):
            def __init__(self):
                self.seen = []
            def on_start(self, event):
                self.seen.append(event.data["dispatcher"].py_func.__module__)
            def on_end(self, event):
                pass

        sys.ps1, names, err = ">>> ", Names(), io.StringIO()
        import zerogap as zg
        X = np.random.default_rng(0).standard_normal((90, 4))
        with warnings.catch_warnings(record=True) as seen, contextlib.redirect_stderr(err):
            warnings.simplefilter("always")
            with event.install_listener("numba:compile", names):
                zg.LinearClassifier("softmax", random_state=0).fit(X, np.arange(90) % 3)
        print(json.dumps([names.seen, [str(w.message) for w in seen], err.getvalue()]))
        """,
        tmp_path,
    )
    assert 0 < len(compiled) <= 80
    assert not [module for module in compiled if module.startswith("numba.cpython.unicode")]
    assert len(warned) == 1
    assert "NUMBA_CACHE_DIR" in warned[0]
    assert said.count("compiling for this kind of data, once") == 1


def test_read_only_input_compiles_nothing_new():
    from zerogap.rows.loops import add_rows

    problem = make_problem("hinge")
    problem.weights(np.ones(40))
    compiled = len(add_rows.signatures)
    X = problem.rows.X.copy()
    X.flags.writeable = False
    zg.Problem(X, problem.y, "hinge").weights(np.ones(40))
    assert len(add_rows.signatures) == compiled


@dataclass(frozen=True)
class Line(Struct):
    slope: float
    offset: float

    def at(self, x):
        return self.slope * x + self.offset


@kernel
def _evaluate(line, x):
    return line.at(x) + line.offset


def test_struct_works_in_python_and_in_kernels():
    line = Line(2.0, 1.0)
    assert line.at(3.0) == 7.0
    assert _evaluate(line, 3.0) == 8.0


def test_a_name_has_one_meaning():
    @dataclass(frozen=True)
    class Clash(Struct):
        dual_step: float = 1.0

    LOSSES["hinge"]()._numba_type_  # noqa: B018
    with pytest.raises(
        TypeError, match=r"Clash.dual_step is a field, but elsewhere .* is a method"
    ):
        Clash()._numba_type_  # noqa: B018


@pytest.mark.posix
def test_signals_wait_until_a_kernel_is_compiled():
    """LLVM's callbacks must not raise: the process would end by a segmentation fault."""
    seen = []

    @undisturbed
    def compile_outer():
        signal.raise_signal(signal.SIGINT)
        compile_inner()  # kernels are compiled inside each other
        seen.append("outer")

    compile_inner = undisturbed(lambda: seen.append("inner"))
    with pytest.raises(KeyboardInterrupt):
        compile_outer()
    assert seen == ["inner", "outer"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_seconds_of_a_fit_do_not_count_compiling(monkeypatch):
    """The clock of runs stands still while kernels are compiled."""
    from zerogap.kernels import machine_code

    before = machine_code.clock()
    monkeypatch.setattr(machine_code._session, "seconds", machine_code._session.seconds + 1000.0)
    assert machine_code.clock() < before - 900.0


def test_machine_code_that_cannot_be_kept_ends_nothing(monkeypatch):
    """A full disk, or a limit of file sizes, ended the run with a bare [Errno 27]."""
    from numba.core.caching import IndexDataCacheFile

    from zerogap.kernels import machine_code

    def full(self, key, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "save", full)
    monkeypatch.setattr(machine_code, "_unkept", [])
    file = object.__new__(machine_code._CacheFile)
    file._index_path = "folder/kernel.nbi"
    with pytest.warns(RuntimeWarning, match="cannot be kept .No space left on device."):
        file.save("key", "data")
    file.save("key", "data")  # told once
