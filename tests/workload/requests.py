"""Requests of administrators and leaders, made from operations and the present state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minicluster.metadata.image.configs import BROKER, CLUSTER_DEFAULT, TOPIC
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.metadata.image.topics import TopicImage
from minicluster.protocol import messages as m
from minicluster.rules import Rules
from tests.workload.processes import Process

Request = tuple[Any, int]
"""A request and its version."""
TIMEOUT_MS = 60_000  # the controller rejects DeleteTopics and CreatePartitions that have none


def administration(kind: str, arguments: Mapping[str, Any], image: MetadataImage) -> Any:
    """An administrator's request; None where the present state allows none."""
    return _REQUESTS[kind](arguments, image)


def partition_of(
    arguments: Mapping[str, Any], image: MetadataImage
) -> tuple[TopicImage, int, PartitionRegistration] | None:
    """The partition that an operation means, if its topic lives."""
    topic = image.topics.named(arguments["topic"])
    if topic is None or not len(topic):
        return None
    index = arguments["partition"] % len(topic)
    return topic, index, topic.partitions[index]


def _create(arguments: Mapping[str, Any], _: MetadataImage) -> Any:
    Request = m.CreateTopicsRequest
    lists = arguments.get("assignments", ())
    topic = Request.CreatableTopic(
        name=arguments["topic"],
        num_partitions=arguments.get("partitions", -1),
        replication_factor=arguments.get("factor", -1),
        assignments=tuple(
            Request.CreatableReplicaAssignment(partition_index=n, broker_ids=replicas)
            for n, replicas in enumerate(lists)
        ),
        configs=tuple(
            Request.CreatableTopicConfig(name=name, value=value)
            for name, value in arguments["configs"].items()
        ),
    )
    return Request(topics=(topic,), validate_only=arguments["validate_only"])


def _delete(arguments: Mapping[str, Any], image: MetadataImage) -> Any:
    Request = m.DeleteTopicsRequest
    topic = image.topics.named(arguments["topic"])
    if topic is None:
        named = Request.DeleteTopicState(name=arguments["topic"])
    else:
        named = Request.DeleteTopicState(name=None, topic_id=topic.id)
    return Request(topics=(named,), timeout_ms=TIMEOUT_MS)


def _grow(arguments: Mapping[str, Any], image: MetadataImage) -> Any:
    Request = m.CreatePartitionsRequest
    topic = image.topics.named(arguments["topic"])
    assignments = None
    if "replicas" in arguments and topic is not None and arguments["count"] > len(topic):
        one = Request.CreatePartitionsAssignment(broker_ids=arguments["replicas"])
        assignments = (one,) * (arguments["count"] - len(topic))
    requested = Request.CreatePartitionsTopic(
        name=arguments["topic"], count=arguments["count"], assignments=assignments
    )
    return Request(topics=(requested,), timeout_ms=TIMEOUT_MS)


def _elect(arguments: Mapping[str, Any], image: MetadataImage) -> Any:
    Request = m.ElectLeadersRequest
    wanted = None
    if "topic" in arguments:
        found = partition_of(arguments, image)
        index = 0 if found is None else found[1]
        wanted = (Request.TopicPartitions(topic=arguments["topic"], partitions=(index,)),)
    return Request(election_type=int(arguments["unclean"]), topic_partitions=wanted)


def _reassign(arguments: Mapping[str, Any], image: MetadataImage) -> Any:
    Request = m.AlterPartitionReassignmentsRequest
    found = partition_of(arguments, image)
    partition = Request.ReassignablePartition(
        partition_index=0 if found is None else found[1], replicas=arguments.get("replicas")
    )
    return Request(
        allow_replication_factor_change=arguments.get("factor_may_change", True),
        topics=(Request.ReassignableTopic(name=arguments["topic"], partitions=(partition,)),),
    )


def _list(_: Mapping[str, Any], __: MetadataImage) -> Any:
    return m.ListPartitionReassignmentsRequest(topics=None)


def _config(arguments: Mapping[str, Any], _: MetadataImage) -> Any:
    Request = m.IncrementalAlterConfigsRequest
    kind, name = {
        "topic": (TOPIC, arguments.get("topic", "")),
        "cluster": (BROKER, CLUSTER_DEFAULT),
        "broker": (BROKER, str(arguments.get("broker", ""))),
    }[arguments["kind"]]
    value = arguments["value"]
    change = Request.AlterableConfig(
        name=arguments["name"], config_operation=1 if value is None else 0, value=value
    )
    resource = Request.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=(change,)
    )
    return Request(resources=(resource,))


def _unregister(arguments: Mapping[str, Any], _: MetadataImage) -> Any:
    return m.UnregisterBrokerRequest(broker_id=arguments["broker"])


def _feature(arguments: Mapping[str, Any], image: MetadataImage) -> Any:
    Request = m.UpdateFeaturesRequest
    name = arguments["feature"]
    level = image.features.level(name) + arguments["up"]
    kind = 1 if arguments["up"] >= 0 else 3
    update = Request.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
    return Request(feature_updates=(update,))


_REQUESTS: Mapping[str, Any] = {
    "create_topic": _create,
    "delete_topic": _delete,
    "create_partitions": _grow,
    "elect_leaders": _elect,
    "reassign": _reassign,
    "cancel_reassignment": _reassign,
    "list_reassignments": _list,
    "config": _config,
    "unregister": _unregister,
    "feature": _feature,
}
ADMINISTRATION = tuple(_REQUESTS)


def alter_partition(
    arguments: Mapping[str, Any], image: MetadataImage, rules: Rules
) -> Request | None:
    """A leader's proposal; sometimes out of date, or from a broker that is not the leader."""
    found = partition_of(arguments, image)
    if found is None or found[2].leader < 0:
        return None
    topic, index, partition = found
    stale, pick = arguments["stale"], arguments["pick"]
    sender = partition.leader
    if stale == "sender":
        sender = partition.replicas[pick % len(partition.replicas)]
    registered = image.cluster.broker(sender)
    if registered is None:
        return None
    version = max(arguments["version"], rules.alter_partition_version_lowest)
    indexes = [index]
    if arguments["more"]:
        led = [n for n, p in topic.items() if p.leader == sender and n != index]
        indexes += led
    Request = m.AlterPartitionRequest
    data = tuple(_proposal(arguments, image, version, n, topic.partitions[n]) for n in indexes)
    request = Request(
        broker_id=sender,
        broker_epoch=registered.epoch - (stale == "broker"),
        topics=(
            Request.TopicData(
                topic_name=topic.name if version < 2 else "",
                topic_id=topic.id,
                partitions=data,
            ),
        ),
    )
    return request, version


def _proposal(
    arguments: Mapping[str, Any],
    image: MetadataImage,
    version: int,
    index: int,
    partition: PartitionRegistration,
) -> m.AlterPartitionRequest.PartitionData:
    stale = arguments["stale"]
    isr = _proposed_isr(arguments["mode"], arguments["pick"], image, partition)
    # A replica whose directory is gone has not fetched lately, so no leader proposes it.
    isr = tuple(r for r in isr if r not in partition.replicas or _is_online(image, partition, r))
    members = {}
    for broker_id in isr:
        broker = image.cluster.broker(broker_id)
        epoch = -1 if broker is None else broker.epoch
        members[broker_id] = epoch - (stale == "member" and broker_id != partition.leader)
    State = m.AlterPartitionRequest.BrokerState
    states = tuple(State(broker_id=b, broker_epoch=e) for b, e in members.items())
    return m.AlterPartitionRequest.PartitionData(
        partition_index=index,
        leader_epoch=partition.leader_epoch - (stale == "leader"),
        partition_epoch=partition.partition_epoch - (stale == "partition"),
        leader_recovery_state=arguments["recovery"],
        new_isr=isr if version < 3 else (),
        new_isr_with_epochs=states if version >= 3 else (),
    )


def _is_online(image: MetadataImage, partition: PartitionRegistration, replica: int) -> bool:
    broker = image.cluster.broker(replica)
    return broker is None or broker.has_online_dir(partition.directory_of(replica))


def _proposed_isr(
    mode: str, pick: int, image: MetadataImage, partition: PartitionRegistration
) -> tuple[int, ...]:
    isr, replicas = partition.isr, partition.replicas
    picked = replicas[pick % len(replicas)]
    match mode:
        case "all":
            # Present members are checked as well, so a leader leaves out a broker that is gone.
            active = [r for r in replicas if image.cluster.is_active(r)]
            return (*(r for r in isr if r in active), *(r for r in active if r not in isr))
        case "add":
            return isr if picked in isr else (*isr, picked)
        case "drop":
            return tuple(r for r in isr if r != picked or r == partition.leader)
        case "alone":
            return (partition.leader,)
        case _:
            return tuple(r for n, r in enumerate(replicas) if pick >> n & 1)


def assign_directories(
    arguments: Mapping[str, Any], image: MetadataImage, process: Process
) -> Any | None:
    """A broker reports the directory of its replicas of a topic."""
    topic = image.topics.named(arguments["topic"])
    if topic is None or process.epoch is None:
        return None
    Request = m.AssignReplicasToDirsRequest
    mine = [index for index, p in topic.items() if process.id in p.replicas]
    parts = tuple(Request.PartitionData(partition_index=index) for index in mine or [0])
    directory = process.directories[arguments["directory"]]
    return Request(
        broker_id=process.id,
        broker_epoch=process.epoch - arguments["stale"],
        directories=(
            Request.DirectoryData(
                id=directory, topics=(Request.TopicData(topic_id=topic.id, partitions=parts),)
            ),
        ),
    )
