"""Errors that a person reads: one line that says what, where and what to do."""

from __future__ import annotations


class MiniclusterError(Exception):
    """The root of every error that this package raises on purpose."""


class UserError(MiniclusterError):
    """The input is wrong. The message is one line for a person; the command line exits with 64+."""

    exit_code = 64


class WaitTimeout(MiniclusterError, AssertionError):
    """A named condition did not come true within its limit of virtual or real time."""
