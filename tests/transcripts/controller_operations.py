"""The operations of controller transcripts: a request is read, decided, put as recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from minicluster.controller.deciding.config_changes import ConfigOperation
from minicluster.controller.deciding.decision import Decision
from minicluster.controller.operations.alter_partition import alter_partition
from minicluster.controller.operations.alter_partition_reassignments import (
    alter_partition_reassignments,
)
from minicluster.controller.operations.assign_replicas_to_dirs import assign_replicas_to_dirs
from minicluster.controller.operations.broker_heartbeat import broker_heartbeat
from minicluster.controller.operations.broker_registration import register_broker
from minicluster.controller.operations.create_partitions import create_partitions
from minicluster.controller.operations.create_topics import create_topics
from minicluster.controller.operations.delete_topics import delete_topics
from minicluster.controller.operations.elect_leaders import elect_leaders
from minicluster.controller.operations.incremental_alter_configs import incremental_alter_configs
from minicluster.controller.operations.list_partition_reassignments import (
    list_partition_reassignments,
)
from minicluster.controller.operations.unregister_broker import unregister_broker
from minicluster.controller.periodic_tasks import (
    maybe_balance_leaders,
    maybe_elect_unclean_leaders,
    maybe_fence_stale_broker,
)
from minicluster.controller.state.broker_heartbeat_manager import BrokerIdAndEpoch
from minicluster.metadata.image.configs import BROKER, TOPIC
from minicluster.metadata.metadata_version import ELR_VERSION, FEATURE_NAME
from minicluster.protocol import ErrorCode, format_uuid, parse_uuid
from minicluster.protocol import messages as m
from minicluster.protocol.records import VersionedRecord

if TYPE_CHECKING:
    from tests.transcripts.controller_player import Player

Json = dict[str, Any]


# What requests have; another field means something that the operations below do not do.
_KNOWN_FIELDS = """
    allow_replication_factor_change assignments broker_epoch broker_id broker_ids cluster_id
    configs cordoned_log_dirs count current_metadata_offset directories election_type feature id
    incarnation_id leader_epoch leader_recovery_state log_dirs name new_isr_with_epochs
    num_partitions offline_log_dirs operation partition_epoch partition_index partition_indexes
    partitions previous_broker_epoch rack replicas replication_factor resource_name resource_type
    topic topic_id topic_name topic_partitions topics validate_only value version want_fence
    want_shut_down
"""
KNOWN_FIELDS = frozenset(_KNOWN_FIELDS.split())


def unknown_fields(request: Any) -> list[str]:
    """The fields of a request, however deep, that no operation reads."""
    if isinstance(request, list):
        return sorted({name for item in request for name in unknown_fields(item)})
    if not isinstance(request, dict):
        return []
    below = {name for value in request.values() for name in unknown_fields(value)}
    return sorted(below | (request.keys() - KNOWN_FIELDS))


class Draws:
    """The recorded draws, one after the other; another bound or too few of them is a difference."""

    def __init__(self, recorded: list[list[int]]) -> None:
        self._left = list(recorded)
        self.problem = ""

    def __call__(self, bound: int) -> int:
        if not self._left or self._left[0][0] != bound:
            self.problem = f"drew below {bound}, recorded: {self._left[:1]}"
            return 0
        return self._left.pop(0)[1]

    @property
    def remaining(self) -> str:
        """What is wrong with the draws altogether."""
        return self.problem or (f"not drawn: {self._left}" if self._left else "")


@dataclass(slots=True)
class Result:
    """What the machine said, in the transcript's terms."""

    response: Any = None
    error: str | None = None
    records: tuple[VersionedRecord, ...] = ()
    atomic: bool | None = None
    message: str | None = None
    problem: str = ""


def _uuids(texts: list[str]) -> tuple[UUID, ...]:
    return tuple(parse_uuid(text) for text in texts)


def _error(code: int) -> str:
    return ErrorCode(code).name


def _result(decision: Decision, response: Any) -> Result:
    return Result(response, None, decision.records, decision.atomic)


def _single(decision: Decision, item: Any) -> Result:
    """The result of an operation on one topic or resource."""
    result = _result(decision, _error(item.error_code))
    result.message = item.error_message
    return result


def _register_broker(player: Player, line: Json) -> Result:
    request = line["request"]
    Feature = m.BrokerRegistrationRequest.Feature
    low, high = player.full_range.start, player.full_range.stop - 1
    features = []
    top = {"full": high, "narrow": player.level - 1, "none": None}[request["feature"]]
    if top is not None:
        features.append(
            Feature(name=FEATURE_NAME, min_supported_version=low, max_supported_version=top)
        )
    if player.elr_offered:
        features.append(Feature(name=ELR_VERSION, min_supported_version=0, max_supported_version=1))
    broker_id = request["broker_id"]
    listener = m.BrokerRegistrationRequest.Listener(
        name="PLAINTEXT", host="localhost", port=9092 + broker_id, security_protocol=0
    )
    decision = register_broker(
        player.state,
        m.BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=request["cluster_id"],
            incarnation_id=parse_uuid(request["incarnation_id"]),
            listeners=(listener,),
            features=tuple(features),
            rack=request["rack"],
            log_dirs=_uuids(request["log_dirs"]),
            previous_broker_epoch=request["previous_broker_epoch"],
        ),
        request["version"],
        line["base_offset"],
        0,
        line["now_ms"],
    )
    return _result(decision, decision.response.broker_epoch)


def _broker_heartbeat(player: Player, line: Json) -> Result:
    request, now_ms = line["request"], line["now_ms"]
    player.heartbeats.contact(request["broker_id"], request["broker_epoch"], now_ms)
    player.sessions.put(BrokerIdAndEpoch(request["broker_id"], request["broker_epoch"]))
    cordoned = request.get("cordoned_log_dirs")
    decision = broker_heartbeat(
        player.state,
        m.BrokerHeartbeatRequest(
            broker_id=request["broker_id"],
            broker_epoch=request["broker_epoch"],
            current_metadata_offset=request["current_metadata_offset"],
            want_fence=request["want_fence"],
            want_shut_down=request["want_shut_down"],
            offline_log_dirs=_uuids(request["offline_log_dirs"]),
            cordoned_log_dirs=None if cordoned is None else _uuids(cordoned),
        ),
        2,
        now_ms,
    )
    response = decision.response
    names = ("is_caught_up", "is_fenced", "in_controlled_shutdown", "should_shut_down")
    return _result(decision, {name: getattr(response, name) for name in names})


def _maybe_fence(player: Player, line: Json) -> Result:
    now_ms = line["now_ms"]
    if not player.state.rules.sessions_by_epoch:
        decision = maybe_fence_stale_broker(player.state, now_ms)
        return _result(decision, None)
    session = player.stale_session(now_ms)
    decision = maybe_fence_stale_broker(player.state, now_ms, first=session)
    return _result(decision, decision.response)


def _balance(player: Player, line: Json) -> Result:
    decision = maybe_balance_leaders(player.state, line["now_ms"])
    return _result(decision, decision.response)


def _elect_unclean(player: Player, line: Json) -> Result:
    decision = maybe_elect_unclean_leaders(player.state, line["now_ms"])
    return _result(decision, decision.response)


def _alter_partition(player: Player, line: Json) -> Result:
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
        player.state,
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
            response["error"] = _error(part.error_code)
            if part.error_code == 0:
                response |= {
                    "leader_id": part.leader_id,
                    "leader_epoch": part.leader_epoch,
                    "leader_recovery_state": part.leader_recovery_state,
                    "partition_epoch": part.partition_epoch,
                    "isr": list(part.isr),
                }
            responses.append(response)
    return _result(decision, responses)


def _create_topics(player: Player, line: Json) -> Result:
    request = line["request"]
    Request = m.CreateTopicsRequest
    draws = Draws(line.get("draws", []))
    responses = line.get("response") or []
    ids = iter([parse_uuid(a["topic_id"]) for a in responses if a["error"] == "NONE"])
    decision = create_topics(
        player.state,
        Request(
            topics=tuple(
                Request.CreatableTopic(
                    name=topic["name"],
                    num_partitions=topic["num_partitions"],
                    replication_factor=topic["replication_factor"],
                    assignments=tuple(
                        Request.CreatableReplicaAssignment(
                            partition_index=a["partition_index"], broker_ids=tuple(a["broker_ids"])
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
        line["now_ms"],
    )
    response = [
        {
            "name": topic.name,
            "topic_id": format_uuid(topic.topic_id),
            "error": _error(topic.error_code),
            "num_partitions": topic.num_partitions,
            "replication_factor": topic.replication_factor,
            "error_message": topic.error_message,
        }
        for topic in decision.response.topics
    ]
    result = _result(decision, response)
    result.problem = draws.remaining
    return result


def _delete_topics(player: Player, line: Json) -> Result:
    Request = m.DeleteTopicsRequest
    topic = Request.DeleteTopicState(name=None, topic_id=parse_uuid(line["request"]["topic_id"]))
    decision = delete_topics(player.state, Request(topics=(topic,)), 6, line["now_ms"])
    return _single(decision, decision.response.responses[0])


def _create_partitions(player: Player, line: Json) -> Result:
    request = line["request"]
    Request = m.CreatePartitionsRequest
    draws = Draws(line.get("draws", []))
    assignments = request["assignments"]
    decision = create_partitions(
        player.state,
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
        line["now_ms"],
    )
    result = _single(decision, decision.response.results[0])
    result.problem = draws.remaining
    return result


def _elect_leaders(player: Player, line: Json) -> Result:
    request = line["request"]
    Request = m.ElectLeadersRequest
    wanted = request["topic_partitions"]
    decision = elect_leaders(
        player.state,
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
    return _result(
        decision,
        [
            {
                "topic": topic.topic,
                "partition": part.partition_id,
                "error": _error(part.error_code),
            }
            for topic in decision.response.replica_election_results
            for part in topic.partition_result
        ],
    )


def _alter_reassignments(player: Player, line: Json) -> Result:
    request = line["request"]
    Request = m.AlterPartitionReassignmentsRequest
    decision = alter_partition_reassignments(
        player.state,
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
    return _result(
        decision,
        [
            {
                "topic": topic.name,
                "partition": part.partition_index,
                "error": _error(part.error_code),
                "error_message": part.error_message,
            }
            for topic in decision.response.responses
            for part in topic.partitions
        ],
    )


def _list_reassignments(player: Player, line: Json) -> Result:
    request = line["request"]
    Request = m.ListPartitionReassignmentsRequest
    wanted = request["topics"]
    decision = list_partition_reassignments(
        player.state,
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
        player.state.image,
        line["now_ms"],
    )
    return _result(
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


def _alter_configs(player: Player, line: Json) -> Result:
    request = line["request"]
    Request = m.IncrementalAlterConfigsRequest
    change = Request.AlterableConfig(
        name=request["name"],
        config_operation=ConfigOperation[request["operation"]],
        value=request["value"],
    )
    decision = incremental_alter_configs(
        player.state,
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
    return _single(decision, decision.response.responses[0])


def _unregister(player: Player, line: Json) -> Result:
    request = m.UnregisterBrokerRequest(broker_id=line["request"]["broker_id"])
    return _result(unregister_broker(player.state, request, 0, line["now_ms"]), None)


def _assign_dirs(player: Player, line: Json) -> Result:
    request = line["request"]
    Request = m.AssignReplicasToDirsRequest
    decision = assign_replicas_to_dirs(
        player.state,
        Request(
            broker_id=request["broker_id"],
            broker_epoch=request["broker_epoch"],
            directories=tuple(
                Request.DirectoryData(
                    id=parse_uuid(directory["id"]),
                    topics=tuple(
                        Request.TopicData(
                            topic_id=parse_uuid(topic["topic_id"]),
                            partitions=tuple(
                                Request.PartitionData(partition_index=index)
                                for index in topic["partitions"]
                            ),
                        )
                        for topic in directory["topics"]
                    ),
                )
                for directory in request["directories"]
            ),
        ),
        0,
        line["now_ms"],
    )
    return _result(
        decision,
        [
            {
                "id": format_uuid(directory.id),
                "topic_id": format_uuid(topic.topic_id),
                "partition": part.partition_index,
                "error": _error(part.error_code),
            }
            for directory in decision.response.directories
            for topic in directory.topics
            for part in topic.partitions
        ],
    )


OPERATIONS: dict[str, Callable[[Player, Json], Result]] = {
    "register_broker": _register_broker,
    "broker_heartbeat": _broker_heartbeat,
    "maybe_fence_stale_brokers": _maybe_fence,
    "maybe_balance_partition_leaders": _balance,
    "maybe_elect_unclean_leaders": _elect_unclean,
    "alter_partition": _alter_partition,
    "create_topics": _create_topics,
    "delete_topics": _delete_topics,
    "create_partitions": _create_partitions,
    "elect_leaders": _elect_leaders,
    "alter_partition_reassignments": _alter_reassignments,
    "list_partition_reassignments": _list_reassignments,
    "incremental_alter_configs": _alter_configs,
    "unregister_broker": _unregister,
    "assign_replicas_to_dirs": _assign_dirs,
}
