"""Classic groups in ``__consumer_offsets``.

Versions: GroupMetadataKey 0, GroupMetadataValue 0-4: 1 has the rebalance timeout, 2 the time of the
          last change of state, 3 static members (KIP-345), 4 is flexible (KIP-915).
"""

from __future__ import annotations

from minicluster.protocol import schema as s


@s.message(api_key=2, kind="coordinator-key", versions="0", flexible="none")
class GroupMetadataKey(s.Message):
    """The key of a classic group."""

    group: str = s.string("0", default="")


@s.message(api_key=2, kind="coordinator-value", versions="0-4", flexible="4+")
class GroupMetadataValue(s.Message):
    """A generation of a classic group with its members and their assignments."""

    @s.struct
    class MemberMetadata(s.Struct):
        member_id: str = s.string("0+", default="")
        group_instance_id: str | None = s.string("3+", default=None, nullable="3+", ignorable=True)
        client_id: str = s.string("0+", default="")
        client_host: str = s.string("0+", default="")
        rebalance_timeout: int = s.int32("1+", default=-1, ignorable=True)
        session_timeout: int = s.int32("0+", default=0)
        subscription: bytes = s.bytes_("0+", default=b"")
        assignment: bytes = s.bytes_("0+", default=b"")

    protocol_type: str = s.string("0+", default="")
    generation: int = s.int32("0+", default=0)
    protocol: str | None = s.string("0+", default="", nullable="0+")
    leader: str | None = s.string("0+", default="", nullable="0+")
    current_state_timestamp: int = s.int64("2+", default=-1, ignorable=True)
    members: tuple[MemberMetadata, ...] = s.array("MemberMetadata", "0+", default=())
