"""The control records of the metadata log and of its snapshots (KIP-595, 630, 853).

They carry their version in a first field and have no frame: the batch is marked as control and
the record key has their type (``CONTROL_CLASSES``).

Versions: LeaderChangeMessage 0-1, SnapshotHeaderRecord 0, SnapshotFooterRecord 0,
          KRaftVersionRecord 0, VotersRecord 0, EndTxnMarker 0.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.uuids import ZERO_UUID


@s.message(kind="data", versions="0-1", flexible="0+")
class LeaderChangeMessage(s.Message):
    """A new leader of the quorum: the first record of its epoch."""

    class Voter(s.Struct):
        voter_id: int = s.int32("0+", default=0)
        voter_directory_id: UUID = s.uuid("1+", default=ZERO_UUID)

    version: int = s.int16("0+", default=0)
    leader_id: int = s.int32("0+", default=0, entity="brokerId")
    voters: tuple[Voter, ...] = s.array("Voter", "0+", default=())
    granting_voters: tuple[Voter, ...] = s.array("Voter", "0+", default=())


@s.message(kind="data", versions="0", flexible="0+")
class SnapshotHeaderRecord(s.Message):
    """The first record of a snapshot."""

    version: int = s.int16("0+", default=0)
    last_contained_log_timestamp: int = s.int64("0+", default=0)


@s.message(kind="data", versions="0", flexible="0+")
class SnapshotFooterRecord(s.Message):
    """The last record of a snapshot."""

    version: int = s.int16("0+", default=0)


@s.message(kind="data", versions="0", flexible="0+")
class KRaftVersionRecord(s.Message):
    """The finalized kraft.version."""

    version: int = s.int16("0+", default=0)
    kraft_version: int = s.int16("0+", default=0, json="kRaftVersion")


@s.message(kind="data", versions="0", flexible="0+")
class VotersRecord(s.Message):
    """The quorum's voters."""

    class Endpoint(s.Struct):
        name: str = s.string("0+", default="")
        host: str = s.string("0+", default="")
        port: int = s.uint16("0+", default=0)

    class KRaftVersionFeature(s.Struct):
        min_supported_version: int = s.int16("0+", default=0)
        max_supported_version: int = s.int16("0+", default=0)

    class Voter(s.Struct):
        voter_id: int = s.int32("0+", default=0, entity="brokerId")
        voter_directory_id: UUID = s.uuid("0+", default=ZERO_UUID)
        endpoints: tuple[VotersRecord.Endpoint, ...] = s.array("Endpoint", "0+", default=())
        kraft_version_feature: VotersRecord.KRaftVersionFeature = s.nested(
            "KRaftVersionFeature", "0+", json="kRaftVersionFeature"
        )

    version: int = s.int16("0+", default=0)
    voters: tuple[Voter, ...] = s.array("Voter", "0+", default=())


@s.message(kind="data", versions="0", flexible="none")
class EndTxnMarker(s.Message):
    """The end of a producer's transaction: the value of its commit and abort markers."""

    coordinator_epoch: int = s.int32("0+", default=0)
