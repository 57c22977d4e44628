"""Commands that are killed or run out of disk or memory: files are the old ones or the new ones.

    python benchmarks/faults.py [--count N | --minutes M] [--first I] [--seed S] [--jobs N]
                                [--only FAULT]

Each trial runs one command of the table SCENES in a process of its own, over files that are there
already, and disturbs it in one way of the table FAULTS, in fault_kinds.py.  What holds afterwards:

* every file that the command writes is the old one or the new one, byte for byte;
* a command that fails says so in one line, without a traceback, and never names a temporary file;
* the same command, run again without a fault, succeeds, and leaves nothing else in the folder.

Trial number I of a seed is always the same command, fault and moment.  After Ctrl-C, the trials so
far are counted as ever.  Ends with exit code 1 if anything was lost.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
from fault_kinds import FAULTS, SIGNALS, Scene, do_nothing, rights_can_be_lost

import zerogap as zg
from zerogap.io import container
from zerogap.store import Store

LONGEST = 60.0  # seconds for one command
LONGEST_FIRST = 600.0  # seconds for the first one, which may compile on a busy machine
LONGEST_LOOK = 0.1  # seconds between two looks at a command; more passes while all are stopped
TRIALS_AT_A_TIME = 20  # for one process
ROWS, FEATURES = 400, 5  # commands take 50 to 100 ms: most of it reading, writing and checks
MOST_SAID = 1 << 20  # bytes of one command's lines, read when it has ended
STOPPED_EARLY = 3  # exit code of a command that was told to stop, and saved what it had


SCENES = (
    Scene("train train.csv --target y --loss logistic --out model.zg", ("model.zg",)),
    Scene("train train.csv --target y --loss hinge --solver sdca --tol 1e-6 "
          "--checkpoint run.zg --out model.zg", ("model.zg", "run.zg")),
    Scene("train train.csv --target y --out model.zg --report page.html",
          ("model.zg", "page.html")),
    Scene("predict base.zg train.csv --out labels.csv", ("labels.csv",)),
    Scene("forget base.zg --rows rows.txt --data train.csv --out model.zg --left left.csv --force",
          ("model.zg", "left.csv")),
    Scene("prove base.zg train.csv --out model.proof", ("model.proof",)),
    Scene("data convert train.svm store --force", ("store",)),
)  # fmt: skip

ABORTED = {"no memory": (127, -signal.SIGABRT, -signal.SIGSEGV)}  # by libraries that give up
LOADED = ("pyarrow.csv", "zerogap.cli.report", "zerogap.model_io", "zerogap.readers.conversion",
          "zerogap.readers.reduced")  # fmt: skip
SHARE_OF_KILLS = 0.6  # of the trials


@cache
def template() -> Path:
    """Return a folder with the inputs of all commands."""
    folder = Path(tempfile.mkdtemp(prefix="zerogap-faults-"))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, FEATURES))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(ROWS) > 0, "yes", "no")
    lines = [",".join([*(f"{v:.6g}" for v in x), label]) for x, label in zip(X, y, strict=True)]
    names = ",".join(f"x{j}" for j in range(FEATURES))
    (folder / "train.csv").write_text("\n".join([f"{names},y", *lines]) + "\n")
    rows = [
        f"{1 if label == 'yes' else -1} " + " ".join(f"{j + 1}:{v:.6g}" for j, v in enumerate(x))
        for x, label in zip(X, y, strict=True)
    ]
    (folder / "train.svm").write_text("\n".join(rows) + "\n")
    (folder / "rows.txt").write_text("3\n7\n")
    first = Scene("train train.csv --target y --loss hinge --out base.zg", ("base.zg",))
    assert run(folder, first, longest=LONGEST_FIRST) == 0, said(folder)
    return folder


@cache
def outcomes(number: int) -> tuple[dict[str, bytes], dict[str, bytes], float]:
    """Return the old and the new files of a scene, and how many seconds it takes."""
    scene = SCENES[number]
    with tempfile.TemporaryDirectory() as name:
        folder = prepared(Path(name), scene)
        old = content(folder, scene)
        times = []
        for _ in range(2):  # the first loads compiled code
            (folder / "run.zg").unlink(missing_ok=True)
            began = time.monotonic()
            assert run(folder, scene, longest=LONGEST_FIRST) == 0, said(folder)
            times.append(time.monotonic() - began)
        return old, content(folder, scene), min(times)


def prepared(folder: Path, scene: Scene) -> Path:
    """Fill a folder with the inputs, and with old files in the place of the new ones."""
    for path in template().iterdir():
        shutil.copy(path, folder)
    if "store" in scene.writes:
        assert run(folder, Scene("data convert train.svm store --seed 1", ())) == 0, said(folder)
    if "model.zg" in scene.writes:
        shutil.copy(folder / "base.zg", folder / "model.zg")
    for name in set(scene.writes) - {"store", "model.zg", "run.zg"}:
        (folder / name).write_text("old\n")
    (folder / "said").unlink(missing_ok=True)
    return folder


def content(folder: Path, scene: Scene) -> dict[str, bytes]:
    """Return what stands in the files that a command writes."""
    return {name: essence(folder / name) for name in scene.writes if (folder / name).exists()}


def essence(path: Path) -> bytes:
    """Return a file without the times that it tells; ValueError where it cannot be read."""
    if path.name == "store":
        return Store(path).fingerprint.encode()
    if path.name == "model.zg":
        model = zg.load(path)
        return np.r_[model.coef_.ravel(), model.intercept_, model.dual_coef_.ravel()].tobytes()
    if path.name == "run.zg":
        container.unpack(container.read_bytes(path))
        return b"a checkpoint"  # whichever came last
    if path.suffix == ".html":
        text = path.read_text()
        if text != "old\n" and not text.rstrip().endswith("</html>"):
            raise ValueError("the page is cut off")
        return text[:4].encode()
    return path.read_bytes()


def run(
    folder: Path,
    scene: Scene,
    begin: Callable[[], None] = do_nothing,
    strike: Callable[[Path, int], None] | None = None,
    after: float = math.inf,
    longest: float = LONGEST,
) -> int:
    """Run a command in a process of its own; return its exit code, negative for a signal.

    It is struck after so many seconds, in which the time that this program is stopped, as by Ctrl-Z
    or on a sleeping machine, does not count.
    """
    sys.stdout.flush()
    heard, speaking = os.pipe()  # a terminal's lines are not on the disk that is full
    fcntl.fcntl(speaking, fcntl.F_SETPIPE_SZ, MOST_SAID)
    if (process := os.fork()) == 0:
        _become(folder, scene, begin, speaking)
    os.close(speaking)
    waited, seen = 0.0, time.monotonic()
    while (found := os.waitpid(process, os.WNOHANG))[0] == 0:
        now = time.monotonic()
        waited, seen = waited + min(now - seen, LONGEST_LOOK), now
        if strike and waited > after:
            strike(folder, process)
            strike = None
        if waited > longest:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            raise AssertionError(f"no end after {longest:.0f} s")
        time.sleep(0.0005)
    folder.mkdir(exist_ok=True)  # it may have been removed
    with open(heard, "rb") as lines:
        (folder / "said").write_bytes(lines.read())
    return os.waitstatus_to_exitcode(found[1])


def _become(folder: Path, scene: Scene, begin: Callable[[], None], output: int) -> None:
    """Run the command in this process, its lines written to `output`, and end it."""
    code = 99
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(folder)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        sys.argv = ["zerogap", *scene.arguments]
        begin()
        from zerogap.cli import main

        main()
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        with contextlib.suppress(ChildProcessError):
            os.wait()  # for the other one of two writers
        os._exit(code)


def said(folder: Path) -> str:
    return (folder / "said").read_text(errors="replace")


def complaint(text: str) -> str:
    """Return what is wrong with how a command reports that it failed."""
    if "Traceback" in text:
        return f"a traceback: {text[-600:]}"
    if ".part-" in text:
        return f"names a temporary file: {text[-300:]}"
    if not any(line.startswith("zerogap") for line in text.splitlines()):
        return f"no message: {text[-300:]!r}"
    return ""


def fault_of(number: int, seed: int) -> tuple[str, random.Random]:
    """Return the fault of a trial, and what makes its other choices."""
    rng = random.Random(seed << 40 | number)
    others = [name for name in FAULTS if name != "killed"]
    if not rights_can_be_lost():
        others.remove("read-only")
    return "killed" if rng.random() < SHARE_OF_KILLS else rng.choice(others), rng


def trial(number: int, seed: int) -> tuple[str, str]:
    """Run one trial; return its fault, and what is wrong with how it ended."""
    name, rng = fault_of(number, seed)
    scene_number = number % len(SCENES)
    scene = SCENES[scene_number]
    old, new, seconds = outcomes(scene_number)
    with tempfile.TemporaryDirectory() as given:
        folder = prepared(Path(given), scene)
        try:
            wrong = disturbed(rng, folder, scene, name, (old, new, seconds))
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        finally:
            folder.chmod(0o755)
    where = f"number {number}, {name}, zerogap {scene.command}"
    return name, f"{where}: {' '.join(wrong.split())}" if wrong else ""


def disturbed(rng: random.Random, folder: Path, scene: Scene, name: str, known: tuple) -> str:
    """Run a command with a fault and once more without; return what is wrong."""
    old, new, seconds = known
    fault = FAULTS[name]
    after = rng.uniform(0.0, fault.within * seconds) if fault.strike else math.inf
    code = run(folder, scene, lambda: fault.begin(rng, folder, scene), fault.strike, after)
    fault.mend(folder, scene)
    early = code == STOPPED_EARLY and name in SIGNALS  # it saved the best model that it had
    for file in {*old, *new}:
        found = content(folder, scene).get(file)  # ValueError where it cannot be read
        if found not in (old.get(file), new.get(file)) and not early:
            return f"{file} is neither the old nor the new one (exit code {code})"
    expected = (0, -SIGNALS.get(name, 0), *ABORTED.get(name, ()))
    if code not in expected and (wrong := complaint(said(folder))):
        return f"exit code {code}, {wrong}"
    # A signal or the loss of the folder may come too late; without checkpoints the run goes on.
    excused = fault.strike or "could not write checkpoint" in said(folder)
    if code == 0 and not excused and content(folder, scene) != new:
        return "it said that it succeeded"
    if (code := run(folder, scene)) != 0:  # a checkpoint is resumed, to the same bits
        return f"run again, it ends with exit code {code}: {said(folder)[-300:]}"
    if content(folder, scene) != new:
        return "run again, it writes something else"
    known_names = {path.name for path in template().iterdir()} | {*scene.writes, "said"}
    if left := sorted({path.name for path in folder.iterdir()} - known_names):
        return f"it left {left}"
    return ""


def trials(
    numbers: range, seed: int, end: float, only: str | None
) -> tuple[Counter[str], list[str]]:
    """Run some trials; return how many of each fault there were, and what was lost."""
    warm_up()
    tried: Counter[str] = Counter()
    lost = []
    for number in numbers:
        if time.time() > end:
            break
        if only and fault_of(number, seed)[0] != only:
            continue
        name, wrong = trial(number, seed)
        tried[name] += 1
        if wrong:
            lost.append(wrong)
    return tried, lost


def _leave_ctrl_c_to_main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@cache
def warm_up() -> None:
    """Load in this process what commands need, as each of them begins as a copy of it.

    Faults then strike what a command does, and not what it loads before, which takes longer.
    """
    from typer.testing import CliRunner

    from zerogap.cli import make_app

    for name in LOADED:
        import_module(name)
    CliRunner().invoke(make_app(), ["show", "missing"])  # loads what parses arguments
    zg.LinearClassifier("hinge", random_state=0).fit([[0.0], [1.0]], [0, 1])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=5000, help="number of trials")
    parser.add_argument("--minutes", type=float, default=math.inf, help="end after so long")
    parser.add_argument("--first", type=int, default=0, help="number of the first trial")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", choices=FAULTS, help="commands disturbed in this way alone")
    options = parser.parse_args()
    last, end = options.first + options.count, time.time() + 60 * options.minutes
    tried: Counter[str] = Counter()
    lost = 0

    def parts() -> Iterator[range]:
        for first in range(options.first, last, TRIALS_AT_A_TIME):
            yield range(first, min(first + TRIALS_AT_A_TIME, last))

    with ProcessPoolExecutor(options.jobs, initializer=_leave_ctrl_c_to_main) as pool:
        given = options.seed, end, options.only
        futures = [pool.submit(trials, part, *given) for part in parts()]
        try:
            for future in futures:
                count, lines = future.result()
                tried += count
                lost += len(lines)
                for line in lines:
                    print(f"LOST {line}", flush=True)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
    print("| fault | commands |\n| --- | --: |")
    for name, count in tried.most_common():
        print(f"| {name} | {count} |")
    done = tried.total()
    later = last if options.only else options.first + done
    print(f"{done} tried, {done - lost} survived, {lost} lost; go on with --first {later}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
