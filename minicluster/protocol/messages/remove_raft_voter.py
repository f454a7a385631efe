"""RemoveRaftVoter (api key 81): a client removes a voter from the quorum.

KIP-853.

Versions: 0, all flexible.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import TEXT_OF_CODE
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=81, kind="request", versions="0", flexible="0+")
class RemoveRaftVoterRequest(s.Message):
    cluster_id: str | None = s.string("0+", default="", nullable="0+")
    voter_id: int = s.int32("0+", default=0)
    voter_directory_id: UUID = s.uuid("0+", default=ZERO_UUID)


@s.message(api_key=81, kind="response", versions="0", flexible="0+")
class RemoveRaftVoterResponse(s.Message):
    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    error_message: str | None = s.string("0+", default="", nullable="0+", ignorable=True)


API = api(
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    kafka_3_9="0",
    kafka_4_3="0",
    forwardable=True,
    error=TEXT_OF_CODE,
)
