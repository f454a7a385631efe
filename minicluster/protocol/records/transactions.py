"""Records that bind others together (KIP-866), and the one without content (KIP-835).

Versions: BeginTransactionRecord 0, EndTransactionRecord 0, AbortTransactionRecord 0, NoOpRecord
          0.
"""

from __future__ import annotations

from minicluster.protocol import schema as s


@s.message(api_key=23, kind="metadata", versions="0", flexible="0+")
class BeginTransactionRecord(s.Message):
    """The records from here on take effect together."""

    name: str | None = s.string("0+", default=None, nullable="0+", tag=0)


@s.message(api_key=24, kind="metadata", versions="0", flexible="0+")
class EndTransactionRecord(s.Message):
    """The transaction is whole: its records take effect."""


@s.message(api_key=25, kind="metadata", versions="0", flexible="0+")
class AbortTransactionRecord(s.Message):
    """The transaction is dropped: its records take no effect."""

    reason: str | None = s.string("0+", default=None, nullable="0+", tag=0)


@s.message(api_key=20, kind="metadata", versions="0", flexible="0+")
class NoOpRecord(s.Message):
    """Nothing has changed, but the log grows."""
