"""``python -m tests.compiled.suite PYTHON``: tests of the suite, played by the compiled wheel.

PYTHON is that of an environment with the wheel and its extra ``test``. The checkout's own sources
stay out of its reach: the tests are seen through a folder that holds links to them alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "compiled-suite"
LINKED = ("tests", "examples", "docs", "pyproject.toml", "README.md")
# Where values come from a user, a client, a file or Spark; the machines alone are in the runs that
# both builds play alike.
PLAYED = (
    "actors", "broker", "cli", "clients", "coordinator", "examples", "export", "fixtures",
    "listeners", "replayed", "replica", "serve", "verify", "workload",
)  # fmt: skip
MARKS = "not slow and not compiled and not kafka and not zookeeper"


def main(args: Sequence[str]) -> int:
    """Play them; pytest's own exit code."""
    if len(args) != 1:
        print("usage: python -m tests.compiled.suite PYTHON", file=sys.stderr)
        return 64
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for name in LINKED:
        (FOLDER / name).symlink_to(ROOT / name)
    played = [f"tests/{name}" for name in PLAYED]
    options = ["-q", "-n", "2", "--dist", "loadgroup", "-m", MARKS, "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(FOLDER), "PYTHONSAFEPATH": "1"}
    environment["MINICLUSTER_BUILD"] = "compiled"  # a pure one is a mistake (tests/conftest.py)
    python = str(Path(args[0]).absolute())
    command = [python, "-m", "pytest", *options, *played]
    return subprocess.run(command, cwd=FOLDER, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
