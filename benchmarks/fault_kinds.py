"""Ways to disturb a command: the table FAULTS of faults.py."""

from __future__ import annotations

import errno
import math
import os
import random
import resource
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

LEAST_MEMORY, MOST_MEMORY = 1 << 16, 1 << 28  # bytes that a command may take beyond what is in use
NOBODY = 65534  # a user without rights
LONGEST_DELAY = 0.03  # seconds, of a slow disk: a server on the same continent
OF_SOMEBODY = "not to be lost"


@dataclass(frozen=True)
class Scene:
    """A command, and the files that it writes: the same ones each time."""

    command: str
    writes: tuple[str, ...]

    @property
    def arguments(self) -> list[str]:
        return self.command.split()


def do_nothing(*_: object) -> None:
    """Leave the command alone at this point."""


@dataclass(frozen=True)
class Fault:
    """One way to disturb a command."""

    begin: Callable[[random.Random, Path, Scene], None] = do_nothing  # in the command's process
    strike: Callable[[Path, int], None] | None = None  # at a random moment, with the process
    mend: Callable[[Path, Scene], None] = do_nothing  # when the command has ended
    within: float = 1.1  # times what the command takes undisturbed: when it strikes


def limit_file_size(rng: random.Random, folder: Path, scene: Scene) -> None:
    """A disk that is full after so many bytes of a file."""
    most = int(10 ** rng.uniform(0, 5))
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def limit_memory(rng: random.Random, folder: Path, scene: Scene) -> None:
    """Memory that ends."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    more = int(math.exp(rng.uniform(math.log(LEAST_MEMORY), math.log(MOST_MEMORY))))
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def limit_open_files(rng: random.Random, folder: Path, scene: Scene) -> None:
    """A table of open files that is full."""
    most = len(os.listdir("/proc/self/fd")) + rng.randrange(6)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def lose_rights(rng: random.Random, folder: Path, scene: Scene) -> None:
    """A folder in which nothing may be written."""
    folder.chmod(0o555)
    if os.geteuid() == 0:
        os.seteuid(NOBODY)


def rights_can_be_lost() -> bool:
    """Tell whether a user without rights could still read Python's own files."""
    folders = Path(os.__file__).resolve().parents
    return os.geteuid() != 0 or all(folder.stat().st_mode & 0o001 for folder in folders)


def regain_rights(folder: Path, scene: Scene) -> None:
    folder.chmod(0o755)


def exceed_quota(rng: random.Random, folder: Path, scene: Scene) -> None:
    """A server that takes what is written, and tells only afterwards that it is too much."""
    accepted, save = rng.randrange(4), os.fsync
    asked = iter(range(1_000_000))

    def refuse(file: int) -> None:
        if next(asked) >= accepted:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
        save(file)

    os.fsync = refuse


def slow_down(rng: random.Random, folder: Path, scene: Scene) -> None:
    """A disk behind a network: what must be safe, or be renamed, takes its time."""
    for name in ("fsync", "replace"):
        setattr(os, name, partial(_late, getattr(os, name), rng.uniform(0.0, LONGEST_DELAY)))


def _late(call: Callable[..., object], seconds: float, *arguments: object) -> object:
    time.sleep(seconds)
    return call(*arguments)


def write_twice(rng: random.Random, folder: Path, scene: Scene) -> None:
    """Two processes that run the same command at once."""
    os.fork()


def link_files(rng: random.Random, folder: Path, scene: Scene) -> None:
    """Links in the place of files, which stand elsewhere."""
    (folder / "elsewhere").mkdir()
    for path in (folder / name for name in scene.writes):
        if path.is_file():
            path.symlink_to(path.rename(folder / "elsewhere" / path.name))


def unlink_files(folder: Path, scene: Scene) -> None:
    for path in (folder / name for name in scene.writes):
        if (folder / "elsewhere" / path.name).exists():
            assert path.is_symlink(), f"{path.name} is no link any more"
            (folder / "elsewhere" / path.name).replace(path)
    (folder / "elsewhere").rmdir()


def put_folder_in_the_way(rng: random.Random, folder: Path, scene: Scene) -> None:
    """A folder of somebody else's, with a file in it, where the command would write."""
    path = folder / rng.choice(scene.writes)
    if path.exists():
        path.rename(folder / f"{path.name}.aside")
    path.mkdir()
    (path / OF_SOMEBODY).touch()


def clear_the_way(folder: Path, scene: Scene) -> None:
    (path,) = (found.parent for found in folder.glob(f"*/{OF_SOMEBODY}"))
    (path / OF_SOMEBODY).unlink()
    path.rmdir()
    if (aside := folder / f"{path.name}.aside").exists():
        aside.rename(path)


def remove_folder(folder: Path, process: int) -> None:
    """Take the folder away under a command, and keep what it held at that moment."""
    os.kill(process, signal.SIGSTOP)
    shutil.copytree(folder, _kept(folder))
    shutil.rmtree(folder)
    os.kill(process, signal.SIGCONT)


def restore_folder(folder: Path, scene: Scene) -> None:
    if _kept(folder).exists():
        shutil.copytree(_kept(folder), folder, dirs_exist_ok=True)
        shutil.rmtree(_kept(folder))


def _kept(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.kept")


def sender(number: signal.Signals) -> Callable[[Path, int], None]:
    """Return a function that sends a signal to a process."""
    return lambda folder, process: os.kill(process, number)


SIGNALS = {"killed": signal.SIGKILL, "terminated": signal.SIGTERM, "interrupted": signal.SIGINT,
           "killed on a slow disk": signal.SIGKILL}  # fmt: skip
FAULTS = {
    "killed": Fault(strike=sender(signal.SIGKILL)),
    "terminated": Fault(strike=sender(signal.SIGTERM)),
    "interrupted": Fault(strike=sender(signal.SIGINT)),
    "killed on a slow disk": Fault(slow_down, sender(signal.SIGKILL), within=3.0),
    "disk full": Fault(limit_file_size),
    "no memory": Fault(limit_memory),
    "no open files": Fault(limit_open_files),
    "quota exceeded": Fault(exceed_quota),
    "read-only": Fault(lose_rights, mend=regain_rights),
    "two writers": Fault(write_twice),
    "links": Fault(link_files, mend=unlink_files),
    "folder in the way": Fault(put_folder_in_the_way, mend=clear_the_way),
    "folder removed": Fault(strike=remove_folder, mend=restore_folder),
}
