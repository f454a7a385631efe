"""RemoveRaftVoter (api key 81): a client removes a voter from the quorum.

KIP-853.

Versions: 0, all flexible; Kafka 3.9 has 0, Kafka 4.3 has 0.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
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
