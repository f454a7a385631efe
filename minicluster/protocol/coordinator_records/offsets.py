"""Committed offsets in ``__consumer_offsets``.

Versions: LegacyOffsetCommitKey 0, LegacyOffsetCommitValue 0-4, OffsetCommitKey 0,
          OffsetCommitValue 0-4: 1 alone has an expiry, 3 the leader epoch, 4 the topic id.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=0, kind="coordinator-key", versions="0", flexible="none")
class LegacyOffsetCommitKey(s.Message):
    """The key of an offset, as Kafka 0.8 wrote it."""

    group: str = s.string("0", default="")
    topic: str = s.string("0", default="")
    partition: int = s.int32("0", default=0)


@s.message(api_key=0, kind="coordinator-value", versions="0", flexible="none")
class LegacyOffsetCommitValue(s.Message):
    """An offset, as Kafka 0.8 wrote it."""

    offset: int = s.int64("0", default=0)
    metadata: str = s.string("0", default="")
    commit_timestamp: int = s.int64("0", default=0)


@s.message(api_key=1, kind="coordinator-key", versions="0", flexible="none")
class OffsetCommitKey(s.Message):
    """The key of a committed offset."""

    group: str = s.string("0", default="")
    topic: str = s.string("0", default="")
    partition: int = s.int32("0", default=0)


@s.message(api_key=1, kind="coordinator-value", versions="0-4", flexible="4+")
class OffsetCommitValue(s.Message):
    """A committed offset; none: it is gone."""

    offset: int = s.int64("0+", default=0)
    leader_epoch: int = s.int32("3+", default=-1, ignorable=True)
    metadata: str = s.string("0+", default="")
    commit_timestamp: int = s.int64("0+", default=0)
    expire_timestamp: int = s.int64("1", default=-1, ignorable=True)
    topic_id: UUID = s.uuid("4+", default=ZERO_UUID, tag=0, ignorable=True)
