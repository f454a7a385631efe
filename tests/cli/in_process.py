"""The command line in this process: a test that starts many commands pays for one start."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

from minicluster.cli import run


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended, as ``subprocess.run`` has it."""

    returncode: int
    stdout: str
    stderr: str


def command(*words: str) -> Done:
    """Run a command to its end."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = run(words)
    return Done(code, out.getvalue(), err.getvalue())
