"""AddRaftVoter (api key 80): a client or a controller adds a voter to the quorum.

KIP-853.

Versions: 0-1, all flexible.
    1: ack_when_committed.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import TEXT_OF_CODE
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=80, kind="request", versions="0-1", flexible="0+")
class AddRaftVoterRequest(s.Message):
    class Listener(s.Struct):
        name: str = s.string("0+", default="")
        host: str = s.string("0+", default="")
        port: int = s.uint16("0+", default=0)

    cluster_id: str | None = s.string("0+", default="", nullable="0+")
    timeout_ms: int = s.int32("0+", default=0)
    voter_id: int = s.int32("0+", default=0)
    voter_directory_id: UUID = s.uuid("0+", default=ZERO_UUID)
    listeners: tuple[Listener, ...] = s.array("Listener", "0+", default=())
    ack_when_committed: bool = s.boolean("1+", default=True)


@s.message(api_key=80, kind="response", versions="0-1", flexible="0+")
class AddRaftVoterResponse(s.Message):
    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    error_message: str | None = s.string("0+", default="", nullable="0+", ignorable=True)


API = api(
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    kafka_3_9="0",
    kafka_4_3="0-1",
    forwardable=True,
    error=TEXT_OF_CODE,
)
