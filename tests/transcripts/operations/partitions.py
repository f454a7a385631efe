"""Transcript operations of partitions: ISRs, elections, reassignments."""

from __future__ import annotations

from typing import Any

from minicluster.controller.operations.alter_partition import alter_partition
from minicluster.controller.operations.alter_partition_reassignments import (
    alter_partition_reassignments,
)
from minicluster.controller.operations.elect_leaders import elect_leaders
from minicluster.controller.operations.list_partition_reassignments import (
    list_partition_reassignments,
)
from minicluster.controller.periodic_tasks import (
    maybe_balance_leaders,
    maybe_elect_unclean_leaders,
)
from minicluster.protocol import format_uuid, parse_uuid
from minicluster.protocol import messages as m
from tests.transcripts.operations.results import (
    Result,
    error_name,
    result_of,
)
from tests.transcripts.replayed_controller import Json, ReplayedController


def on_alter_partition(controller: ReplayedController, line: Json) -> Result:
    request = line["request"]
    version = request["version"]
    Request = m.AlterPartitionRequest
    topics: dict[str, list[Any]] = {}
    ids: dict[str, str] = {}
    for requested in request["partitions"]:
        isr = requested["new_isr_with_epochs"]
        key = requested["topic_id"] if version >= 2 else requested["topic_name"]
        ids[key] = requested["topic_id"]
        topics.setdefault(key, []).append(
            Request.PartitionData(
                partition_index=requested["partition_index"],
                leader_epoch=requested["leader_epoch"],
                partition_epoch=requested["partition_epoch"],
                leader_recovery_state=requested["leader_recovery_state"],
                new_isr=tuple(b["broker_id"] for b in isr) if version < 3 else (),
                new_isr_with_epochs=tuple(Request.BrokerState(**b) for b in isr)
                if version >= 3
                else (),
            )
        )
    decision = alter_partition(
        controller.state,
        Request(
            broker_id=request["broker_id"],
            broker_epoch=request["broker_epoch"],
            topics=tuple(
                Request.TopicData(topic_id=parse_uuid(key), partitions=tuple(parts))
                if version >= 2
                else Request.TopicData(topic_name=key, partitions=tuple(parts))
                for key, parts in topics.items()
            ),
        ),
        version,
        line["now_ms"],
    )
    responses = []
    for topic in decision.response.topics:
        name = (
            {"topic_id": format_uuid(topic.topic_id)}
            if version >= 2
            else {"topic_name": topic.topic_name}
        )
        for part in topic.partitions:
            response = name | {"partition_index": part.partition_index}
            response["error"] = error_name(part.error_code)
            if part.error_code == 0:
                response |= {
                    "leader_id": part.leader_id,
                    "leader_epoch": part.leader_epoch,
                    "leader_recovery_state": part.leader_recovery_state,
                    "partition_epoch": part.partition_epoch,
                    "isr": list(part.isr),
                }
            responses.append(response)
    return result_of(decision, responses)


def on_elect_leaders(controller: ReplayedController, line: Json) -> Result:
    request = line["request"]
    Request = m.ElectLeadersRequest
    wanted = request["topic_partitions"]
    # Kafka's collection keeps an entry that comes twice, as a live node's responses show; the
    # recorder put the entries into a set before.
    if wanted is not None and len(line["response"] or ()) < sum(
        len(t["partitions"]) for t in wanted
    ):
        wanted = [entry for i, entry in enumerate(wanted) if entry not in wanted[:i]]
    decision = elect_leaders(
        controller.state,
        Request(
            election_type=request["election_type"],
            topic_partitions=None
            if wanted is None
            else tuple(
                Request.TopicPartitions(topic=t["topic"], partitions=tuple(t["partitions"]))
                for t in wanted
            ),
        ),
        2,
        line["now_ms"],
    )
    return result_of(
        decision,
        [
            {
                "topic": topic.topic,
                "partition": part.partition_id,
                "error": error_name(part.error_code),
            }
            for topic in decision.response.replica_election_results
            for part in topic.partition_result
        ],
    )


def on_maybe_balance_partition_leaders(controller: ReplayedController, line: Json) -> Result:
    decision = maybe_balance_leaders(controller.state, line["now_ms"])
    return result_of(decision, decision.response)


def on_maybe_elect_unclean_leaders(controller: ReplayedController, line: Json) -> Result:
    decision = maybe_elect_unclean_leaders(controller.state, line["now_ms"])
    return result_of(decision, decision.response)


def on_alter_partition_reassignments(controller: ReplayedController, line: Json) -> Result:
    request = line["request"]
    Request = m.AlterPartitionReassignmentsRequest
    decision = alter_partition_reassignments(
        controller.state,
        Request(
            allow_replication_factor_change=request.get("allow_replication_factor_change", True),
            topics=tuple(
                Request.ReassignableTopic(
                    name=topic["name"],
                    partitions=tuple(
                        Request.ReassignablePartition(
                            partition_index=p["partition_index"],
                            replicas=None if p["replicas"] is None else tuple(p["replicas"]),
                        )
                        for p in topic["partitions"]
                    ),
                )
                for topic in request["topics"]
            ),
        ),
        1,
        line["now_ms"],
    )
    return result_of(
        decision,
        [
            {
                "topic": topic.name,
                "partition": part.partition_index,
                "error": error_name(part.error_code),
                "error_message": part.error_message,
            }
            for topic in decision.response.responses
            for part in topic.partitions
        ],
    )


def on_list_partition_reassignments(controller: ReplayedController, line: Json) -> Result:
    request = line["request"]
    Request = m.ListPartitionReassignmentsRequest
    wanted = request["topics"]
    decision = list_partition_reassignments(
        controller.state,
        Request(
            topics=None
            if wanted is None
            else tuple(
                Request.ListPartitionReassignmentsTopics(
                    name=t["name"], partition_indexes=tuple(t["partition_indexes"])
                )
                for t in wanted
            )
        ),
        0,
        controller.state.image,
        line["now_ms"],
    )
    return result_of(
        decision,
        [
            {
                "topic": topic.name,
                "partition": p.partition_index,
                "replicas": list(p.replicas),
                "adding_replicas": list(p.adding_replicas),
                "removing_replicas": list(p.removing_replicas),
            }
            for topic in decision.response.topics
            for p in topic.partitions
        ],
    )
