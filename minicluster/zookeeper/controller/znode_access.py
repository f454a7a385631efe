"""Reads and writes of znodes by the controller.

Every write of the controller is a multi with a check of its epoch: a controller that another one
has followed writes nothing any more. The check is of the version of /controller_epoch, which it got
at its election, so ZooKeeper itself decides it in one step with the write.

Source:  KAFKA-6082; kafka.zk.KafkaZkClient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from minicluster.metadata.topic_partition import TopicPartition
from minicluster.planting import step
from minicluster.values import Value, replace
from minicluster.zookeeper.controller.controller_state import ControllerState
from minicluster.zookeeper.controller.errors import (
    ControllerMoved,
    IllegalState,
    ZooKeeperFailure,
)
from minicluster.zookeeper.controller.leader_and_isr import LeaderAndIsr, Leadership
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.operations import (
    Check,
    Code,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Operation,
    Request,
    Result,
    SetData,
)
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.cluster import BrokerRegistration, decode_controller
from minicluster.zookeeper.znodes.json_text import NotJson
from minicluster.zookeeper.znodes.topics import TopicAssignment

T = TypeVar("T")
D = TypeVar("D")


def read_data(state: ControllerState, path: str) -> Process[Result]:
    """Read a znode, and watch it if its changes are handled."""
    (result,) = yield (GetData(path, path in state.watched_nodes),)
    return result


def read_all(state: ControllerState, of: Sequence[str]) -> Process[tuple[Result, ...]]:
    """Read some znodes together.

    Errors:  IllegalState for a path that ZooKeeper's client does not take: none is read.
    """
    if not of:
        return ()
    invalid = [path for path in of if not paths.is_valid(path)]
    if invalid:
        raise IllegalState(f"invalid path: {invalid[0]}")
    results = yield tuple(GetData(path, path in state.watched_nodes) for path in of)
    return results


def children_of(state: ControllerState, path: str) -> Process[tuple[str, ...]]:
    """The names of a znode's children, none if it is not there."""
    (result,) = yield (GetChildren(path, path in state.watched_children),)
    if result.code is Code.NONODE:
        return ()
    return expect_ok(result).children


def watch_node(state: ControllerState, path: str) -> Process[bool]:
    """Handle changes of a znode from now on; True if it is there."""
    state.watch_nodes((path,))
    (result,) = yield (Exists(path, watch=True),)
    if result.code is Code.NONODE:
        return False
    return expect_ok(result).ok


def expect_ok(result: Result, *allowed: Code) -> Result:
    """The result, if its code is OK or allowed."""
    if not result.ok and result.code not in allowed:
        raise ZooKeeperFailure(result.code)
    return result


def decoded(decode: Callable[[bytes | None], T], result: Result, default: D) -> T | D:
    """The content of a znode that a tool may write; a missing one, and no JSON, has none.

    Errors:  ProtocolError for JSON of another shape: it ends the event, and fails a fail-over.
    Source:  kafka.utils.Json.parseBytes, whose JsonValue throws where it is not what is expected.
    """
    try:
        return decode(result.data) if result.ok else default
    except NotJson:
        return default


def write_all(
    state: ControllerState, operations: Sequence[Operation]
) -> Process[tuple[Result, ...]]:
    """Write as the controller: one multi for each operation, with a check of the epoch.

    Errors:  ControllerMoved if the check fails.
    """
    if not operations:
        return ()
    results = yield tuple(checked(state, operation) for operation in operations)
    unwrapped = []
    for result in results:
        if not result.parts:
            unwrapped.append(result)  # no result of ZooKeeper: the session has expired
            continue
        of_check, of_write = result.parts
        if not of_check.ok:
            raise ControllerMoved(of_check.code.name)
        unwrapped.append(of_write)
    return tuple(unwrapped)


@step
def checked(state: ControllerState, operation: Operation) -> Request:
    """The write, if this broker is still the controller."""
    return Multi((Check(paths.CONTROLLER_EPOCH, state.context.epoch_version), operation))


def read_controller(state: ControllerState) -> Process[int | None]:
    """The broker in /controller."""
    result = expect_ok((yield from read_data(state, paths.CONTROLLER)), Code.NONODE)
    return decode_controller(result.data) if result.ok else None


def read_brokers(
    state: ControllerState,
) -> Process[dict[int, tuple[BrokerRegistration, int]]]:
    """The registered brokers, with their epochs: the czxid of each one's znode."""
    names = yield from children_of(state, paths.BROKER_IDS)
    brokers = sorted(int(name) for name in names)
    results = yield from read_all(state, [paths.broker_id(broker) for broker in brokers])
    registered = {}
    for broker, result in zip(brokers, results, strict=True):
        if expect_ok(result, Code.NONODE).ok:
            data, stat = result.data_and_stat
            registered[broker] = (BrokerRegistration.decode(data), stat.czxid)
    return registered


def read_assignments(
    state: ControllerState, topics: Iterable[str]
) -> Process[dict[str, TopicAssignment]]:
    """The assignments of some topics."""
    names = list(topics)
    results = yield from read_all(state, [paths.topic(name) for name in names])
    return {
        name: TopicAssignment.decode(result.data)
        for name, result in zip(names, results, strict=True)
        if expect_ok(result, Code.NONODE).ok
    }


def read_states(
    state: ControllerState, partitions: Sequence[TopicPartition]
) -> Process[dict[TopicPartition, Leadership | Exception | None]]:
    """The state of each partition; None where there is none, or why it could not be read."""
    results = yield from read_all(
        state, [paths.partition_state(partition) for partition in partitions]
    )
    states: dict[TopicPartition, Leadership | Exception | None] = {}
    for partition, result in zip(partitions, results, strict=True):
        if result.ok:
            data, stat = result.data_and_stat
            states[partition] = Leadership.read(data, stat.version)
        elif result.code is Code.NONODE:
            states[partition] = None
        else:
            states[partition] = ZooKeeperFailure(result.code)
    return states


def read_known_states(
    state: ControllerState, partitions: Sequence[TopicPartition]
) -> Process[dict[TopicPartition, Leadership]]:
    """The states of the partitions that have one."""
    states = yield from read_states(state, partitions)
    for leadership in states.values():
        if isinstance(leadership, Exception):
            raise leadership
    return {p: value for p, value in states.items() if isinstance(value, Leadership)}


class StateUpdates(Value):
    """The outcome of some writes of states; those of ``retry`` had another version."""

    written: Mapping[TopicPartition, LeaderAndIsr]
    failed: Mapping[TopicPartition, ZooKeeperFailure]
    retry: tuple[TopicPartition, ...]


def write_states(
    state: ControllerState, updates: Mapping[TopicPartition, LeaderAndIsr]
) -> Process[StateUpdates]:
    """Write states, each if its znode has the partition epoch that the decision began with."""
    operations = [state_write(state, partition, update) for partition, update in updates.items()]
    results = yield from write_all(state, operations)
    written, failed, retry = {}, {}, []
    for (partition, update), result in zip(updates.items(), results, strict=True):
        if result.ok:
            assert result.stat is not None, partition
            written[partition] = replace(update, partition_epoch=result.stat.version)
        elif result.code is Code.BADVERSION:
            retry.append(partition)
        else:
            failed[partition] = ZooKeeperFailure(result.code)
    return StateUpdates(written, failed, tuple(retry))


@step
def state_write(state: ControllerState, partition: TopicPartition, update: LeaderAndIsr) -> SetData:
    """The write of a state where its znode still has the version that the decision began with.

    Otherwise it would undo what the leader has written meanwhile (below IBP 2.7-IV2).
    """
    data = update.state(state.context.epoch).to_json().encode()
    return SetData(paths.partition_state(partition), data, update.partition_epoch)


def create_states(
    state: ControllerState, leaders: Mapping[TopicPartition, LeaderAndIsr]
) -> Process[dict[TopicPartition, bool]]:
    """Create the states of new partitions, and the znodes above them.

    Shapes:  True for each partition whose state was created.
    """
    topics = dict.fromkeys(partition.topic for partition in leaders)
    yield from write_all(state, [Create(paths.topic_partitions(topic)) for topic in topics])
    yield from write_all(state, [Create(paths.partition(partition)) for partition in leaders])
    results = yield from write_all(
        state,
        [
            Create(
                paths.partition_state(partition),
                leader.state(state.context.epoch).to_json().encode(),
            )
            for partition, leader in leaders.items()
        ],
    )
    return {p: result.ok for p, result in zip(leaders, results, strict=True)}


def write_assignment(
    state: ControllerState, topic: str, assignment: TopicAssignment
) -> Process[None]:
    """Write the assignment of a topic."""
    (result,) = yield from write_all(state, [SetData(paths.topic(topic), assignment.encode())])
    expect_ok(result)


def delete_all(state: ControllerState, of: Sequence[str]) -> Process[None]:
    """Delete some znodes; one that is not there is as good."""
    yield from write_all(state, [Delete(path) for path in of])


def delete_recursively(state: ControllerState, path: str) -> Process[None]:
    """Delete a znode and all below it, bottom up."""
    (result,) = yield (GetChildren(path, path in state.watched_children),)
    if result.code is Code.NONODE:
        return
    for child in expect_ok(result).children:
        yield from delete_recursively(state, f"{path}/{child}")
    (deleted,) = yield from write_all(state, [Delete(path)])
    expect_ok(deleted, Code.NONODE)
