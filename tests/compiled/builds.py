"""The two builds: this interpreter with the sources, and that of an environment with the wheel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Set by `make compiled` and `make bench`: a wheel of older sources is not found by chance.
COMPILED = os.environ.get("MINICLUSTER_COMPILED", "")
PURE = sys.executable

needs_compiled = pytest.mark.skipif(not COMPILED, reason="no compiled wheel: make compiled")


def start(python: str, *command: str) -> subprocess.Popen[str]:
    """Start a command with a build."""
    path = str(ROOT) if python == PURE else ""
    return subprocess.Popen(
        [str(Path(python).absolute()), *command],
        env={**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def output(process: subprocess.Popen[str], text: str = "") -> str:
    """Give a process its input; what it has printed when it ends."""
    printed, _ = process.communicate(text)
    assert process.returncode == 0, "the error of the process is above"
    return printed
