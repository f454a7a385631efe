"""The actions on topics, configs and registrations, as an operator's requests on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from minicluster.actors.cluster.actions.performing import ms, performs
from minicluster.actors.cluster.actions.requests import (
    raise_if_rejected,
    reject_on_zookeeper,
    send,
    wait_for_commit,
)
from minicluster.actors.cluster.cluster import ZOOKEEPER
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.actors.cluster.topic_configs import check_topic_configs
from minicluster.actors.cluster.views import Topic
from minicluster.configs.dynamic_broker import check_by_itself
from minicluster.errors import UserError
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.scenario.actions import topics as declared
from minicluster.scenario.actions.action import ADMIN_WITHIN
from minicluster.scenario.actions.arguments import Duration, Partitions, read_duration
from minicluster.values import Value

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
SET, DELETE = 0, 1
ELECTION_TYPES = {"PREFERRED": 0, "UNCLEAN": 1}


class Reassignment(Value, kw_only=True):
    """An ongoing reassignment: the replicas, those being added and those being removed."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@performs(declared.CreateTopic)
def create_topic(cluster: ClusterRoles, do: declared.CreateTopic) -> Topic:
    configs = cast(Mapping[str, str | None], do.configs or {})
    settings = {key: value for key, value in configs.items() if value is not None}
    check_topic_configs(settings)
    if do.min_isr is not None:
        settings["min.insync.replicas"] = str(do.min_isr)
    if do.unclean is not None:
        settings["unclean.leader.election.enable"] = str(do.unclean).lower()
    request = m.CreateTopicsRequest
    assignments = tuple(
        request.CreatableReplicaAssignment(
            partition_index=index, broker_ids=tuple(cluster.ids(brokers) if brokers else ())
        )
        for index, brokers in enumerate(do.assignment or ())
    )
    topic = request.CreatableTopic(
        name=do.name,
        num_partitions=-1 if assignments else do.partitions,
        replication_factor=-1 if assignments else do.replicas_on(_broker_count(cluster)),
        assignments=assignments,
        configs=tuple(
            request.CreatableTopicConfig(name=key, value=value) for key, value in settings.items()
        ),
    )
    task = f"create topic {do.name}"
    response = send(cluster, task, request(topics=(topic,)), do.within)
    result = response.topics[0]
    raise_if_rejected(task, result.error_code, result.error_message)
    wait_for_commit(cluster, lambda: cluster.image.topics.named(do.name) is not None)
    return Topic(cluster, do.name)


def _broker_count(cluster: ClusterRoles) -> int:
    """Brokers here and those of other processes."""
    return len({*cluster.broker_ids, *cluster.image.cluster.brokers.rows})


@performs(declared.DeleteTopic)
def delete_topic(cluster: ClusterRoles, do: declared.DeleteTopic) -> None:
    names = cast(tuple[str, ...], do.name)
    task = f"delete topic {', '.join(names)}"
    states = tuple(m.DeleteTopicsRequest.DeleteTopicState(name=name) for name in names)
    request = m.DeleteTopicsRequest(topics=states, timeout_ms=ms(do.within))
    response = send(cluster, task, request, do.within)
    for result in response.responses:
        raise_if_rejected(task, result.error_code, result.error_message)
    wait_for_commit(
        cluster, lambda: all(cluster.image.topics.named(name) is None for name in names)
    )


@performs(declared.RecreateTopic)
def recreate_topic(cluster: ClusterRoles, do: declared.RecreateTopic) -> Topic:
    name = str(do.name)
    topic = cluster.image.topics.named(name)
    if topic is None:
        raise UserError(f"recreate topic {name}: there is no such topic")
    configs = cluster.image.configs.of(TOPIC_RESOURCE, name)
    # On ZooKeeper a partition has no state until one of its replicas has lived.
    lacking = set(range(max(topic.partitions, default=0) + 1)).difference(topic.partitions)
    if lacking:
        why = "has no state yet, since none of its replicas is alive"
        raise UserError(f"recreate topic {name}: partition {min(lacking)} {why}")
    assignment = [topic.partitions[index].replicas for index in range(len(topic))]
    delete_topic(cluster, name, within=do.within)
    return create_topic(cluster, name, assignment=assignment, configs=configs, within=do.within)


@performs(declared.AddPartitions)
def add_partitions(cluster: ClusterRoles, do: declared.AddPartitions) -> None:
    request = m.CreatePartitionsRequest
    assignments = None
    if do.assignment is not None:
        assignments = tuple(
            request.CreatePartitionsAssignment(
                broker_ids=cluster.ids(list(brokers)) if brokers else ()
            )
            for brokers in do.assignment
        )
    wanted = request.CreatePartitionsTopic(
        name=str(do.name), count=do.total, assignments=assignments
    )
    task = f"add partitions to {do.name}"
    grown = request(topics=(wanted,), timeout_ms=ms(do.within))
    response = send(cluster, task, grown, do.within)
    [result] = response.results
    raise_if_rejected(task, result.error_code, result.error_message)


@performs(declared.Reassign)
def reassign(cluster: ClusterRoles, do: declared.Reassign) -> None:
    target = None if do.replicas is None else cluster.ids(do.replicas)
    request = m.AlterPartitionReassignmentsRequest
    topics = tuple(
        request.ReassignableTopic(
            name=topic,
            partitions=tuple(
                request.ReassignablePartition(partition_index=index, replicas=target)
                for index in indexes
            ),
        )
        for topic, indexes in _by_topic(do.partitions).items()
    )
    response = send(cluster, "reassign", request(topics=topics), do.within)
    raise_if_rejected("reassign", response.error_code, response.error_message)
    for topic in response.responses:
        for result in topic.partitions:
            task = f"reassign {topic.name}-{result.partition_index}"
            raise_if_rejected(task, result.error_code, result.error_message)


def reassignments(
    cluster: ClusterRoles, *, within: Duration = ADMIN_WITHIN
) -> dict[str, Reassignment]:
    """The ongoing reassignments by partition (ListPartitionReassignments)."""
    task = "list reassignments"
    request = m.ListPartitionReassignmentsRequest(topics=None)
    response = send(cluster, task, request, read_duration(within, f"{task}: within"))
    raise_if_rejected(task, response.error_code, response.error_message)
    return {
        f"{topic.name}-{partition.partition_index}": Reassignment(
            replicas=partition.replicas,
            adding=partition.adding_replicas,
            removing=partition.removing_replicas,
        )
        for topic in response.topics
        for partition in topic.partitions
    }


@performs(declared.SetConfig)
def set_config(cluster: ClusterRoles, do: declared.SetConfig) -> None:
    if do.topic is not None:
        check_topic_configs([do.key])
        kind, names = TOPIC_RESOURCE, [str(do.topic)]
    else:
        check_by_itself(do.key, do.value, per_broker=do.broker is not None)
        kind = BROKER_RESOURCE
        names = [""] if do.broker is None else [str(node) for node in cluster.ids(do.broker)]
    request = m.IncrementalAlterConfigsRequest
    config = request.AlterableConfig(
        name=do.key,
        config_operation=DELETE if do.value is None else SET,
        value=None if do.value is None else str(do.value),
    )
    resources = tuple(
        request.AlterConfigsResource(resource_type=kind, resource_name=name, configs=(config,))
        for name in names
    )
    requests: list[tuple[m.IncrementalAlterConfigsRequest, int | None]]
    if do.broker is not None and cluster.mode == ZOOKEEPER:
        # Nobody forwards there: a broker takes its own configs alone.
        requests = [
            (request(resources=(resource,)), int(resource.resource_name)) for resource in resources
        ]
    else:
        requests = [(request(resources=resources), None)]
    for sent, to in requests:
        response = send(cluster, f"set {do.key}", sent, do.within, to=to)
        for result in response.responses:
            raise_if_rejected(f"set {do.key}", result.error_code, result.error_message)


@performs(declared.Elect)
def elect(cluster: ClusterRoles, do: declared.Elect) -> dict[str, ErrorCode]:
    request = m.ElectLeadersRequest(
        election_type=ELECTION_TYPES[do.election_type],
        topic_partitions=tuple(
            m.ElectLeadersRequest.TopicPartitions(topic=topic, partitions=tuple(indexes))
            for topic, indexes in _by_topic(do.partitions).items()
        ),
    )
    response = send(cluster, "elect", request, do.within)
    raise_if_rejected("elect", response.error_code)
    return {
        f"{result.topic}-{partition.partition_id}": ErrorCode(partition.error_code)
        for result in response.replica_election_results
        for partition in result.partition_result
    }


@performs(declared.Unregister)
def unregister(cluster: ClusterRoles, do: declared.Unregister) -> None:
    for broker_id in cluster.ids(do.broker):
        task = f"unregister {broker_id}"
        why = "a registration ends with the session of its broker"
        reject_on_zookeeper(cluster, task, why)
        request = m.UnregisterBrokerRequest(broker_id=broker_id)
        response = send(cluster, task, request, do.within)
        raise_if_rejected(task, response.error_code, response.error_message)


def _by_topic(partitions: Partitions) -> dict[str, list[int]]:
    wanted: dict[str, list[int]] = {}
    for topic, index in cast(tuple[tuple[str, int], ...], partitions):
        wanted.setdefault(topic, []).append(index)
    return wanted
