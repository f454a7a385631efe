"""Instructions of the processor, which are the same whatever else the machine does.

They are counted by callgrind (the Debian package ``valgrind``); two runs of one commit differ by
0.5 %. Interpreters differ by a fifth, so a commit is compared with an earlier one by the same.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
BASE = "5f55464a"
"""The commit that later ones are compared with; a new one where a rise was wanted."""
RISE_MAX = 1.05
WORKS = ("start", "idle", "loaded")
"""The work that is compared; also ``minute 10``: the end of that minute of the load."""

_HEADER = "#include <valgrind/callgrind.h>\n"
_WORK = re.compile(r"^desc: Trigger: Client Request: (.+):(\d+)$", re.MULTILINE)
_TOTAL = re.compile(r"^(?:totals|summary): (\d+)$", re.MULTILINE)


class NotMeasured(Exception):
    """A commit whose cluster does not run."""


def lacking() -> str:
    """What this machine lacks for counting, as a line for people; "" if nothing."""
    if shutil.which("valgrind") is None:
        return "valgrind is not installed, so no instructions are counted"
    if shutil.which("cc") is None:
        return "there is no C compiler (cc), so no instructions are counted"
    found = subprocess.run(
        ["cc", "-fsyntax-only", "-x", "c", "-"], input=_HEADER, text=True, capture_output=True
    )
    return "" if found.returncode == 0 else "valgrind's headers are not installed"


def millions(checkout: Path, works: Sequence[str] = WORKS) -> dict[str, float]:
    """Millions of instructions of a start, or of a second, of a checkout.

    Errors:  NotMeasured.
    """
    with TemporaryDirectory() as folder:
        switch, counts = Path(folder, "switch.so"), Path(folder, "counts")
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-o", switch, HERE / "switch.c"], check=True, timeout=60
        )
        command = [
            *("valgrind", "--tool=callgrind", "--instr-atstart=no", "--cache-sim=no"),
            *(f"--callgrind-out-file={counts}", sys.executable, HERE / "work.py", switch),
            *works,
        ]
        environment = os.environ | {"PYTHONPATH": str(checkout), "PYTHONHASHSEED": "0"}
        ended = subprocess.run(
            command, cwd=checkout, env=environment, capture_output=True, text=True
        )
        if ended.returncode != 0:
            raise NotMeasured(f"{checkout} does not run:\n{ended.stderr[-2_000:]}")
        return dict(_counts(Path(folder).glob("counts*")))


def _counts(files: Iterator[Path]) -> Iterator[tuple[str, float]]:
    for path in sorted(files, key=lambda path: path.stat().st_mtime_ns):
        text = path.read_text(errors="replace")
        work, total = _WORK.search(text), _TOTAL.search(text)
        if work is not None and total is not None:
            yield work[1], int(total[1]) / int(work[2]) / 1e6


def _git(*arguments: str | Path) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


def has(commit: str) -> bool:
    """Whether the commit is in this repository, and not cut off by a shallow clone."""
    known = subprocess.run(["git", "cat-file", "-e", commit], cwd=ROOT, capture_output=True)
    return known.returncode == 0


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """The files of a commit, for a while."""
    with TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        _git("worktree", "add", "--quiet", "--detach", tree, commit)
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", tree)


def of_commit(commit: str, works: Sequence[str] = WORKS) -> dict[str, float]:
    """The same as ``millions``, of a commit."""
    with checked_out(commit) as tree:
        return millions(tree, works)


def risen(base: dict[str, float], now: dict[str, float]) -> list[str]:
    """The kinds of work that cost more than a commit may add, as lines for people."""
    return [
        f"{name}: {base[name]:.1f} M, now {cost:.1f} M ({cost / base[name] - 1:+.0%})"
        for name, cost in now.items()
        if name in base and cost > RISE_MAX * base[name]
    ]


def culprit(base: str, name: str, before: float, after: float) -> str:
    """The commit since the base that made the greater part of a rise, by halving; its title.

    One that does not run is passed over for those after it.
    """
    commits = _git("rev-list", "--reverse", "--first-parent", f"{base}..HEAD").split()
    middle, low, high = (before + after) / 2, 0, len(commits) - 1
    while low < high:
        half = (low + high) // 2
        try:
            is_dear = of_commit(commits[half], [name])[name] > middle
        except NotMeasured:
            is_dear = False
        if is_dear:
            high = half
        else:
            low = half + 1
    return _git("show", "--no-patch", "--format=%h %s", commits[low]).strip() if commits else ""
