"""The command line of this installation, as a line that is printed can be pasted."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

NAME = "minicluster"


def command_line(*words: object) -> str:
    """A command of this program for people to paste, quoted.

    It has its name where the shell finds that, else it is called as it was, else by its path: a
    page tells of it as well, that a test has written in an environment that is not activated.

    Shapes:  words: its arguments.
    """
    called, beside = Path(sys.argv[0]), Path(sys.executable).with_name(NAME)
    if shutil.which(NAME) is not None:
        command = NAME
    elif called.name == NAME:
        command = str(called)
    else:
        command = str(beside) if beside.is_file() else NAME
    return shlex.join([command, *map(str, words)])
