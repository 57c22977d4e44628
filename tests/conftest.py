"""Fixtures."""

import os
import sys
from pathlib import Path

import pytest

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # lets scikit-learn run its array API checks too


@pytest.fixture(scope="session")
def data_folder():
    folder = os.environ.get("ZEROGAP_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("set ZEROGAP_DATA to the folder with the real data sets")
    return Path(folder)


def pytest_runtest_setup(item):
    if sys.platform == "win32" and item.get_closest_marker("posix"):
        pytest.skip("needs a POSIX system")
