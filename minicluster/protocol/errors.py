"""Errors between values and bytes."""

from __future__ import annotations

from minicluster.errors import MiniclusterError


class ProtocolError(MiniclusterError):
    """Bytes that are not a message, or a value that no message can carry.

    The text names the message, its version, the field and, on decoding, the offset in the buffer.
    """

    def __init__(self, message: str, field: str, why: str, *, offset: int | None = None) -> None:
        where = message + (f", field {field}" if field else "")
        at = "" if offset is None else f" at byte {offset}"
        super().__init__(f"{where}{at}: {why}")
        self.message = message
        self.field = field
        self.offset = offset
        self.why = why


class UnsupportedVersion(ProtocolError):
    """A version that a message does not have, or that lacks a field which holds something."""
