"""Transcript operations of topics and their configs."""

from __future__ import annotations

from uuid import UUID

from minicluster.controller.config_changes import ConfigOperation
from minicluster.controller.mutation_quotas import UNBOUNDED
from minicluster.controller.operations.alter_configs import incremental_alter_configs
from minicluster.controller.operations.create_partitions import create_partitions
from minicluster.controller.operations.create_topics import create_topics
from minicluster.controller.operations.delete_topics import delete_topics
from minicluster.metadata.image.configs import BROKER, TOPIC
from minicluster.protocol import format_uuid, parse_uuid
from minicluster.protocol import messages as m
from tests.transcripts.operations.results import (
    Draws,
    Result,
    error_name,
    result_of,
    single_result,
)
from tests.transcripts.replayed_controller import Json, ReplayedController


def on_create_topics(controller: ReplayedController, line: Json) -> Result:
    request = line["request"]
    Request = m.CreateTopicsRequest
    draws = Draws(line.get("draws", []))
    responses = line.get("response") or []
    ids = iter([parse_uuid(a["topic_id"]) for a in responses if a["error"] == "NONE"])
    decision = create_topics(
        controller.state,
        Request(
            topics=tuple(
                Request.CreatableTopic(
                    name=topic["name"],
                    num_partitions=topic["num_partitions"],
                    replication_factor=topic["replication_factor"],
                    assignments=tuple(
                        Request.CreatableReplicaAssignment(
                            partition_index=a["partition_index"],
                            broker_ids=tuple(a["broker_ids"]),
                        )
                        for a in topic["assignments"]
                    ),
                    configs=tuple(Request.CreatableTopicConfig(**c) for c in topic["configs"]),
                )
                for topic in request["topics"]
            ),
            validate_only=request["validate_only"],
        ),
        7,
        draws,
        lambda: next(ids, UUID(int=0)),
        UNBOUNDED,
        line["now_ms"],
    )
    response = [
        {
            "name": topic.name,
            "topic_id": format_uuid(topic.topic_id),
            "error": error_name(topic.error_code),
            "num_partitions": topic.num_partitions,
            "replication_factor": topic.replication_factor,
            "error_message": topic.error_message,
        }
        for topic in decision.response.topics
    ]
    result = result_of(decision, response)
    result.problem = draws.remaining
    return result


def on_delete_topics(controller: ReplayedController, line: Json) -> Result:
    Request = m.DeleteTopicsRequest
    topic = Request.DeleteTopicState(name=None, topic_id=parse_uuid(line["request"]["topic_id"]))
    decision = delete_topics(
        controller.state, Request(topics=(topic,)), 6, UNBOUNDED, line["now_ms"]
    )
    return single_result(decision, decision.response.responses[0])


def on_create_partitions(controller: ReplayedController, line: Json) -> Result:
    request = line["request"]
    Request = m.CreatePartitionsRequest
    draws = Draws(line.get("draws", []))
    assignments = request["assignments"]
    decision = create_partitions(
        controller.state,
        Request(
            topics=(
                Request.CreatePartitionsTopic(
                    name=request["name"],
                    count=request["count"],
                    assignments=None
                    if assignments is None
                    else tuple(
                        Request.CreatePartitionsAssignment(
                            broker_ids=tuple(a["broker_ids"] if isinstance(a, dict) else a)
                        )
                        for a in assignments
                    ),
                ),
            )
        ),
        3,
        draws,
        UNBOUNDED,
        line["now_ms"],
    )
    result = single_result(decision, decision.response.results[0])
    result.problem = draws.remaining
    return result


def on_incremental_alter_configs(controller: ReplayedController, line: Json) -> Result:
    request = line["request"]
    Request = m.IncrementalAlterConfigsRequest
    change = Request.AlterableConfig(
        name=request["name"],
        config_operation=ConfigOperation[request["operation"]],
        value=request["value"],
    )
    decision = incremental_alter_configs(
        controller.state,
        Request(
            resources=(
                Request.AlterConfigsResource(
                    resource_type={"TOPIC": TOPIC, "BROKER": BROKER}[request["resource_type"]],
                    resource_name=request["resource_name"],
                    configs=(change,),
                ),
            )
        ),
        1,
        True,
        line["now_ms"],
    )
    return single_result(decision, decision.response.responses[0])
