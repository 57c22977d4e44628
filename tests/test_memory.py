"""How much memory is said to be free, where the system's own numbers mislead."""

import math
import os

import pytest

from zerogap.io import memory


@pytest.fixture
def unused(monkeypatch):
    """Let the system say that nobody uses half a gigabyte, and forget what groups are known."""
    sizes = {"SC_AVPHYS_PAGES": 2**17, "SC_PAGE_SIZE": 2**12}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    monkeypatch.setattr(memory, "_limited_group", lambda: None)
    return 2.0**29


def test_files_that_the_system_keeps_in_memory_make_room(unused, monkeypatch):
    monkeypatch.setattr(memory, "_available", lambda: 8e9)
    assert memory.free_memory() == 8e9


def test_without_linux_numbers_what_is_unused_is_free(unused, monkeypatch):
    monkeypatch.setattr(memory, "_available", lambda: 0.0)
    assert memory.free_memory() == unused


def test_a_container_has_what_its_limit_leaves(unused, monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "_available", lambda: 8e9)
    monkeypatch.setattr(memory, "_limited_group", lambda: tmp_path)
    (tmp_path / "memory.max").write_text("3000000000\n")
    (tmp_path / "memory.current").write_text("2500000000\n")
    (tmp_path / "memory.stat").write_text("anon 5\nactive_file 7\ninactive_file 400000000\n")
    assert memory.free_memory() == 9e8


def test_a_system_that_says_nothing_has_no_limit(monkeypatch):
    def refuse(name):
        raise ValueError(name)

    monkeypatch.setattr(os, "sysconf", refuse)
    assert memory.free_memory() == math.inf
