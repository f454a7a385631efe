"""UpdateRaftVoter (api key 82): a voter reports its endpoints and versions to the leader.

KIP-853.

Versions: 0, all flexible.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=82, kind="request", versions="0", flexible="0+")
class UpdateRaftVoterRequest(s.Message):
    class Listener(s.Struct):
        name: str = s.string("0+", default="")
        host: str = s.string("0+", default="")
        port: int = s.uint16("0+", default=0)

    class KRaftVersionFeature(s.Struct):
        min_supported_version: int = s.int16("0+", default=0)
        max_supported_version: int = s.int16("0+", default=0)

    cluster_id: str | None = s.string("0+", default="", nullable="0+")
    current_leader_epoch: int = s.int32("0+", default=0)
    voter_id: int = s.int32("0+", default=0)
    voter_directory_id: UUID = s.uuid("0+", default=ZERO_UUID)
    listeners: tuple[Listener, ...] = s.array("Listener", "0+", default=())
    kraft_version_feature: KRaftVersionFeature = s.nested(
        "KRaftVersionFeature", "0+", json="kRaftVersionFeature"
    )


@s.message(api_key=82, kind="response", versions="0", flexible="0+")
class UpdateRaftVoterResponse(s.Message):
    class CurrentLeader(s.Struct):
        leader_id: int = s.int32("0+", default=-1, entity="brokerId")
        leader_epoch: int = s.int32("0+", default=-1)
        host: str = s.string("0+", default="")
        port: int = s.int32("0+", default=0)

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    current_leader: CurrentLeader = s.nested("CurrentLeader", "0+", tag=0)


API = api(
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    kafka_3_9="0",
    kafka_4_3="0",
)
