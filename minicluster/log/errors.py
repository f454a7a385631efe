"""Errors of a log on disk, each one line for a person."""

from __future__ import annotations

from minicluster.errors import UserError


class LogError(UserError):
    """A log cannot be read as it is."""


class NotALog(LogError):
    """The path holds nothing that this package reads."""

    exit_code = 66


class InvalidName(LogError):
    """The name of a file or folder holds a number that Kafka has no room for."""

    exit_code = 65


class LogCorruption(LogError):
    """A batch in the middle of a file is damaged: what follows it cannot be trusted."""

    exit_code = 65

    def __init__(self, *, file: str, position: int, base_offset: int | None, why: str) -> None:
        batch = "" if base_offset is None else f", batch of offset {base_offset}"
        super().__init__(f"{file}: damaged at byte {position}{batch}: {why}")
        self.file = file
        self.position = position
        self.base_offset = base_offset
        self.why = why


class UnknownState(LogError):
    """The state that a log leads to cannot be known: what it begins with is damaged or missing."""

    exit_code = 65


class TooLarge(LogError):
    """A batch is sound and larger than the limits of reading allow."""

    exit_code = 65


class InvalidBatch(LogError):
    """Bytes that do not make a record batch of format v2."""


class UndecodableBatch(InvalidBatch):
    """Records that cannot be unpacked."""
