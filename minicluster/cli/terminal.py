"""The terminal of a command: output, errors, and the file of a traceback.

The contents of files and messages are printed as text. Control characters, and characters that the
terminal's encoding lacks, appear as escapes.
"""

from __future__ import annotations

import errno
import os
import platform
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import IO, TextIO

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from minicluster.errors import Crash, NoEffectWarning, printable
from minicluster.version import VERSION


class Output(Console):
    """A console whose reader may leave early, as ``head`` does; that is not an error."""

    def on_broken_pipe(self) -> None:
        """Print nothing more."""
        self.quiet = True
        _write_no_more(self.file)


out = Output(highlight=False, soft_wrap=True, emoji=False)
_VERIFYING = "verifying"
err = Output(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def prepare() -> None:
    """Let the streams escape what their encoding lacks, instead of failing there."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    warnings.showwarning = _show_warning


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print one line for a setting without effect; other warnings as Python has them."""
    if issubclass(category, NoEffectWarning):
        complain(f"minicluster: {message}", style="yellow")
    else:
        print(warnings.formatwarning(message, category, filename, lineno, line), file=sys.stderr)


def console() -> Console:
    """The console for results.

    On a terminal it is that of the spinner, which moves out of the way of what its own console
    prints, and of nothing else.
    """
    return err if err.is_terminal and out.is_terminal else out


def print_line(text: str) -> None:
    """Print one line of a result."""
    console().print(printable(text), markup=False)


def complain(text: str, style: str | None = None) -> None:
    """Print one line on standard error."""
    err.print(printable(text), markup=False, style=style)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines as they are, for programs; a reader that has read enough ends it."""
    try:
        for line in lines:
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _write_no_more(sys.stdout)


def _write_no_more(stream: IO[str]) -> None:
    """Let the rest of the buffer go nowhere, so that the exit does not stumble over the pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def progress() -> Progress:
    """A line with a spinner on standard error; nothing where that is not a terminal."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    return Progress(*columns, console=err, transient=True, disable=not err.is_terminal)


@contextmanager
def shown_verification(shown: Progress | None = None) -> Iterator[Callable[[object], None]]:
    """A line for how far a verification is, on a display that is there or on its own."""
    with progress() if shown is None else nullcontext(shown) as display:
        task = display.add_task(_VERIFYING, total=None)
        yield lambda state: display.update(task, description=f"{_VERIFYING}: {state}")


FULL = os.strerror(errno.ENOSPC)


def shown_os_error(error: OSError, before: str = "") -> str:
    """An error of the operating system in one line: the file, if it names one, and the reason.

    Shapes:  before: the text before the reason.
    """
    reason = error.strerror or str(error) or type(error).__name__
    return (
        before + reason
        if error.filename is None
        else f"{os.fsdecode(error.filename)}: {before}{reason}"
    )


def is_full_disk(error: BaseException) -> bool:
    """A disk is full, as Java or one of Spark's workers reports it."""
    return FULL in str(error)


def report_crash(crash: Crash, arguments: Iterable[object]) -> None:
    """Report in one line a fault of the program, and leave the traceback in a file."""
    content = (
        f"minicluster {VERSION}, Python {platform.python_version()}, "
        f"{platform.platform()}\n"
        f"{' '.join(['minicluster', *map(repr, arguments)])}\n\n{crash.trace}"
    )
    try:
        descriptor, path = tempfile.mkstemp(prefix="minicluster-", suffix=".txt", text=True)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(content)
        complain(f"minicluster: {crash.line}; please report it with {path}")
    except OSError:  # there is no place for a file
        complain(f"minicluster: {crash.line}")
        sys.stderr.write(content)
