"""The value of a record as the trace shows it: its text, or the digest of a long one.

A run has as many values as clients sent records, so each of them is small. Two records have the
same value where they have the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

VALUE_BYTES_MAX = 1024
_SHOWN_BYTES = 64


def value_text(value: bytes | None) -> str:
    """A value as text; a longer one as its beginning, its size and its digest."""
    content = value or b""
    if len(content) <= VALUE_BYTES_MAX:
        return content.decode("utf-8", "backslashreplace")
    beginning = content[:_SHOWN_BYTES].decode("utf-8", "backslashreplace")
    digest = blake2b(content, digest_size=16).hexdigest()
    return f"{beginning}… ({len(content)} bytes, blake2b {digest})"


def value_texts(values: Sequence[bytes]) -> Sequence[bytes]:
    """The texts of many values, in UTF-8: most values are such a text."""
    if b"".join(values).isascii() and max(map(len, values), default=0) <= VALUE_BYTES_MAX:
        return values
    return [value_text(value).encode() for value in values]
