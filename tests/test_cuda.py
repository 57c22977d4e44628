"""Training on a GPU, as far as that can be tested without one."""

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import zerogap as zg
from problems import make_data, make_problem
from zerogap.cuda import DeviceError, device

TESTS = Path(__file__).parent
GROUPS = sorted(
    {path.stem for path in (TESTS / "cuda_cases").glob("*.py")} - {"common", "conftest"}
)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("groups", [GROUPS[::2], GROUPS[1::2]], ids="-".join)
def test_cases_in_the_simulator(groups):
    """In a process of its own: numba-cuda asks for the simulator once, when it is imported.

    Two processes are enough for two cores; each one more takes three seconds to start.
    """
    if importlib.util.find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda, which has the simulator, is not installed")
    cases = [str(TESTS / "cuda_cases" / f"{group}.py") for group in groups]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *cases],
        cwd=TESTS.parent,
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def found(monkeypatch):
    """Modules of a GPU's libraries, by name; those that are None are missing."""
    modules = {
        "numba_cuda": SimpleNamespace(__version__="0.30.4"),
        "cupy": SimpleNamespace(
            __version__="13.6.0",
            cuda=SimpleNamespace(
                runtime=SimpleNamespace(getDeviceCount=lambda: 0, CUDARuntimeError=OSError)
            ),
        ),
    }
    import_module = importlib.import_module

    def imported(name, *arguments):
        module = modules[name] if name in modules else import_module(name, *arguments)
        if module is None:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return module

    monkeypatch.setattr(importlib, "import_module", imported)
    device.arrays.cache_clear()
    yield modules
    device.arrays.cache_clear()


def refusals(where="cuda"):
    """What a run and a fit say where there is no GPU."""
    with pytest.raises(DeviceError) as run:
        zg.solve(make_problem("hinge"), zg.SDCA(), device=where)
    model = zg.LinearClassifier(device=where)
    with pytest.raises(DeviceError) as fit:
        model.fit(*make_data("hinge"))
    assert not hasattr(model, "coef_")
    assert run.value.result is None
    return [str(run.value), str(fit.value)]


@pytest.mark.parametrize("where", ["cuda", "cuda-deterministic"])
@pytest.mark.parametrize("missing", [["cupy"], ["numba_cuda"], ["numba_cuda", "cupy"]])
def test_missing_libraries_are_named(found, missing, where):
    found.update(dict.fromkeys(missing))
    names = {"numba_cuda": "numba-cuda", "cupy": "CuPy"}
    for text in refusals(where):
        assert "pip install 'zerogap[gpu]'" in text
        assert text.endswith("Use device='cpu'")
        for module, name in names.items():
            there = f"{name} {'0.30.4' if module == 'numba_cuda' else '13.6.0'}"
            absent = f"no {name} (No module named '{module}')"
            assert (absent if module in missing else there) in text


def test_a_missing_gpu_is_named(found):
    for text in refusals():
        assert "found: numba-cuda 0.30.4, CuPy 13.6.0, no GPU." in text

    def fail():
        raise OSError("the driver is too old")

    found["cupy"].cuda.runtime.getDeviceCount = fail
    for text in refusals():
        assert "CuPy 13.6.0, no usable GPU (the driver is too old)." in text


def test_other_devices_are_refused():
    message = "device must be one of cpu, cuda, cuda-deterministic, got 'tpu'"
    with pytest.raises(ValueError, match=message):
        zg.solve(make_problem("hinge"), zg.SDCA(), device="tpu")
    for cls, loss in ((zg.LinearClassifier, "hinge"), (zg.LinearRegressor, "squared")):
        with pytest.raises(ValueError, match=message):
            cls(loss, device="tpu").fit(*make_data(loss))


def test_the_processor_needs_no_library_of_a_gpu():
    code = """
        import sys
        import zerogap as zg
        print(sorted({"numba", "cupy", "numba_cuda"} & set(sys.modules)))
        zg.LinearClassifier(random_state=0).fit([[0.0], [1.0]], [0, 1]).predict([[1.0]])
        print(sorted({"numba.cuda", "cupy", "numba_cuda"} & set(sys.modules)))
    """
    code = "\n".join(line.strip() for line in code.splitlines())
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[]", "[]"]
