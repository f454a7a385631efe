"""The group coordinator of one broker, as a pure machine.

    publisher        --on_metadata-->        GroupCoordinatorMachine  --append--> InternalLog
    members          --on_request-->          a shard per partition of
    replica manager  --on_high_watermark-->   __consumer_offsets      --Respond-> member

A group belongs to the partition that the hash of its id gives. The leader of that partition is its
coordinator.

Source:  GroupCoordinatorService, GroupCoordinatorShard; BrokerMetadataPublisher.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from minicluster.coordinator.group.administration import (
    handle_consumer_group_describe,
    handle_delete_groups,
    handle_describe_groups,
    handle_list_groups,
)
from minicluster.coordinator.group.classic_protocol import (
    handle_heartbeat,
    handle_join_group,
    handle_leave_group,
    handle_sync_group,
)
from minicluster.coordinator.group.config import GroupCoordinatorConfig
from minicluster.coordinator.group.consumer.heartbeat import handle_consumer_group_heartbeat
from minicluster.coordinator.group.coordinator_state import GroupCoordinatorState
from minicluster.coordinator.group.offsets.commit import (
    handle_offset_commit,
    handle_txn_offset_commit,
)
from minicluster.coordinator.group.offsets.delete import (
    delete_offsets_of_deleted_topics,
    handle_offset_delete,
)
from minicluster.coordinator.group.offsets.fetch import handle_offset_fetch
from minicluster.coordinator.group.request_context import ClientContext, Context
from minicluster.coordinator.runtime.internal_log import InternalLog
from minicluster.coordinator.runtime.runtime import follow_leadership
from minicluster.effects import Effect
from minicluster.faults import Faults
from minicluster.metadata.image.delta import MetadataDelta
from minicluster.protocol import ErrorCode, Message
from minicluster.protocol import messages as m
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.topics import GROUP_METADATA_TOPIC
from minicluster.rules import Rules

Handler = Callable[[GroupCoordinatorState, Context, Any, int, int], None]
HANDLERS: Mapping[type[Message], Handler] = {
    m.ConsumerGroupDescribeRequest: handle_consumer_group_describe,
    m.ConsumerGroupHeartbeatRequest: handle_consumer_group_heartbeat,
    m.DeleteGroupsRequest: handle_delete_groups,
    m.DescribeGroupsRequest: handle_describe_groups,
    m.HeartbeatRequest: handle_heartbeat,
    m.JoinGroupRequest: handle_join_group,
    m.LeaveGroupRequest: handle_leave_group,
    m.ListGroupsRequest: handle_list_groups,
    m.OffsetCommitRequest: handle_offset_commit,
    m.OffsetDeleteRequest: handle_offset_delete,
    m.OffsetFetchRequest: handle_offset_fetch,
    m.SyncGroupRequest: handle_sync_group,
    m.TxnOffsetCommitRequest: handle_txn_offset_commit,
}
"""The requests to a group coordinator, and the function that handles each."""


class GroupCoordinatorMachine:
    """All groups that a broker coordinates. Each input returns its effects.

    * ``startup(num_partitions)``: of ``__consumer_offsets``, once.
    * ``on_metadata(delta, offset, now_ms)``: the leaders of ``__consumer_offsets``, and all topics.
    * ``on_high_watermark(partition, offset, now_ms)``: records of a partition are committed.
    * ``on_request(token, request, version, client, now_ms)``: its ``Respond`` may come later.
    * ``on_timer(name, now_ms)``: of a SetTimer.
    * ``end_of_input()``: after a verification or a marker.

    Shapes:  effects are Respond, SetTimer, CancelTimer, Trace, FaultHit.
    """

    def __init__(
        self,
        broker_id: int,
        config: GroupCoordinatorConfig,
        log: InternalLog,
        *,
        new_uuid: Callable[[], uuid.UUID],
        rules: Rules = Rules.KAFKA_4_3,
        faults: Faults = Faults.NONE,
    ) -> None:
        self.broker_id = broker_id
        self.state = GroupCoordinatorState(config, log, rules, new_uuid, faults)

    def startup(self, num_partitions: int) -> None:
        """Find groups by so many partitions of ``__consumer_offsets`` from now on.

        Source:  GroupCoordinatorService.startup.
        """
        self.state.num_partitions = num_partitions

    def on_metadata(self, delta: MetadataDelta, offset: int, now_ms: int) -> list[Effect]:
        """Follow the leadership of partitions, then the topics that groups subscribe to.

        Units:   offset is the last one that the delta contains.
        Shapes:  -> Respond for what waits in a shard that is led elsewhere, SetTimer.
        """
        runtime = self.state.runtime
        self.state.image = delta.after
        self.state.metadata_offset = offset
        follow_leadership(runtime, GROUP_METADATA_TOPIC, delta, self.broker_id, now_ms)
        runtime.on_metadata(delta.after, now_ms)
        delete_offsets_of_deleted_topics(self.state, delta, now_ms)
        return self.state.take_effects()

    def on_high_watermark(self, partition: int, offset: int, now_ms: int) -> list[Effect]:
        """Give the responses whose records are committed.

        Units:   all below the offset is committed.
        """
        self.state.runtime.on_high_watermark(partition, offset, now_ms)
        return self.state.take_effects()

    def on_request(
        self, token: Any, request: Any, version: int, client: ClientContext, now_ms: int
    ) -> list[Effect]:
        """Respond, now or later.

        Errors:  in the response; UNSUPPORTED_VERSION for an API that has no handler here.
        """
        handler = HANDLERS.get(type(request))
        if handler is None:
            rejection = error_response(request, ErrorCode.UNSUPPORTED_VERSION, version=version)
            self.state.respond(token, rejection)
        else:
            handler(self.state, Context(token, client), request, version, now_ms)
        return self.state.take_effects()

    @property
    def timers(self) -> tuple[str, ...]:
        """The names of the timers that this machine sets."""
        return (self.state.timers.name,)

    def on_timer(self, name: str, now_ms: int) -> list[Effect]:
        """Run what is due.

        Shapes:  name is that of the SetTimer; other names are ignored.
        """
        if name not in self.timers:
            return []
        self.state.timers.run(now_ms)
        return self.state.take_effects()

    def end_of_input(self) -> list[Effect]:
        """The effects of what a verification or a marker has written."""
        return self.state.take_effects()
