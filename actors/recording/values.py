"""The value of a record as the trace shows it: its text, or the digest of a long one.

A run has as many values as clients sent records, so each of them is small. Two records have the
same value where they have the same bytes.
"""

from __future__ import annotations

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
