"""Errors that a person reads: one line with what, where and what to do."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from enum import IntEnum


class MiniclusterError(Exception):
    """The root of every error that this package raises on purpose."""


class UserError(MiniclusterError):
    """The input is wrong. The message is one line for a person; the command line exits with 64+."""

    exit_code = 64


class Stopped(MiniclusterError):
    """Ctrl-C ended a command. The message is one line: what was stopped, and how to repeat it."""


class Crash:
    """A fault of this program, as text, which also comes from other processes.

    Shapes:  line: the error in one line; trace: its traceback.
    """

    def __init__(self, error: BaseException) -> None:
        first = next(iter(str(error).splitlines()), "")
        self.line = f"internal error: {type(error).__name__}{': ' * bool(first)}{first[:200]}"
        self.trace = "".join(traceback.format_exception(error))


class NoEffectWarning(UserWarning):
    """A setting is accepted and changes nothing here. The message is one line for a person."""


class RequestRejected(UserError):
    """The cluster answered a request of a test with an error.

    Shapes:  error: the ErrorCode of Kafka; message: what the node says of it, or None.
    """

    def __init__(self, what: str, error: IntEnum, message: str | None) -> None:
        super().__init__(f"{what}: {error.name}{f': {message}' if message else ''}")
        self.error = error
        self.message = message


class NoResponse(UserError):
    """No node responded to a request of a test within its limit."""


class WaitTimeout(MiniclusterError, AssertionError):
    """A condition did not hold within its limit of virtual or real time."""


class NeverFired(MiniclusterError, AssertionError):
    """An answer that had to act (``must_fire``) has met no request by the end of the run."""


def printable(text: str) -> str:
    """A text in one line; characters that would steer a terminal are shown as their escapes."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def counted(count: int, what: str) -> str:
    """A number of things in words: 1 seed, 20 seeds."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def instead(word: object, known: Iterable[str], otherwise: str | None = None) -> str:
    """The word to write instead of an unknown one: the one that was meant, else all of them.

    Shapes:  otherwise takes the place of the list, where that would be long.
    """
    from difflib import get_close_matches

    names = list(known)
    near = get_close_matches(str(word), names, 1, 0.75)
    if near:
        return f"did you mean {near[0]}?"
    if otherwise is not None:
        return otherwise
    first = [name for place, name in enumerate(names) if len(", ".join(names[:place])) < 200]
    more = "" if len(first) == len(names) else f", … ({len(names)} in all)"
    return f"known: {', '.join(first)}{more}"
