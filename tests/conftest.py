"""Fixtures."""

import os
import signal
import sys
from pathlib import Path

import pytest

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # lets scikit-learn run its array API checks too
if "PYTEST_XDIST_WORKER" in os.environ:
    # A process for each core: threads of OpenBLAS that wait for each other take four times longer
    for _library in ("OMP", "OPENBLAS", "MKL"):
        os.environ.setdefault(f"{_library}_NUM_THREADS", "1")


def pytest_configure():
    """Take the signals that shells and nohup let jobs in the background ignore: tests send them."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def data_folder():
    folder = os.environ.get("ZEROGAP_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("set ZEROGAP_DATA to the folder with the real data sets")
    return Path(folder)


def pytest_addoption(parser):
    parser.addoption(
        "--verify-models",
        action="store_true",
        help="prove every model that tests fit, and have the proofs checked by the verifier",
    )


@pytest.fixture(scope="session", autouse=True)
def _verified(request):
    if not request.config.getoption("--verify-models"):
        yield
        return
    from verified_models import verified_models

    with verified_models(as_asked=True) as checked:
        yield
    print(f"\n{len(checked)} models verified")


def pytest_runtest_setup(item):
    if sys.platform == "win32" and item.get_closest_marker("posix"):
        pytest.skip("needs a POSIX system")
