"""What a client is told when its coordinator could not write: never the error of the log itself.

A client of a group or of a transaction knows the errors of a coordinator: NOT_COORDINATOR sends it
to look for another one, COORDINATOR_NOT_AVAILABLE has it try again. Of NOT_ENOUGH_REPLICAS or
REQUEST_TIMED_OUT in a SyncGroup response it knows nothing, and some clients give up.

Source:  CoordinatorOperationExceptionHelper.handleOperationException;
         GroupMetadataManager.appendGroupMetadataErrorToResponseError;
         TransactionStateManager.appendTransactionToLog.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from minicluster.protocol import ErrorCode as E
from minicluster.protocol import messages as m
from tests.coordinator.groups import Groups
from tests.coordinator.test_migration import ClassicMember, assignment, classic_group
from tests.coordinator.transaction_bench import T0, Bench

CLIENTS_ERROR: Mapping[E, E] = {
    E.UNKNOWN_TOPIC_OR_PARTITION: E.COORDINATOR_NOT_AVAILABLE,
    E.NOT_ENOUGH_REPLICAS: E.COORDINATOR_NOT_AVAILABLE,
    E.REQUEST_TIMED_OUT: E.COORDINATOR_NOT_AVAILABLE,
    E.NOT_LEADER_OR_FOLLOWER: E.NOT_COORDINATOR,
    E.KAFKA_STORAGE_ERROR: E.NOT_COORDINATOR,
    E.MESSAGE_TOO_LARGE: E.UNKNOWN_SERVER_ERROR,
    E.RECORD_LIST_TOO_LARGE: E.UNKNOWN_SERVER_ERROR,
    E.INVALID_FETCH_SIZE: E.UNKNOWN_SERVER_ERROR,
}
"""The error that the log gives, and the one that the client gets."""


def fail(groups: Groups, error: E) -> None:
    """From now on the log rejects, or, with a time-out, what is written is not committed."""
    if error == E.REQUEST_TIMED_OUT:
        groups.log.mark = groups.log.end
    else:
        groups.log.refusal = error


def result(groups: Groups, request: Any, version: int) -> Any:
    """The response to a request, within the time that a write may take."""
    token = groups.send(request, version)
    groups.advance(groups.machine.state.config.offset_commit_timeout_ms)
    return groups.responses[token]


def join_new_group(groups: Groups, error: E) -> E:
    """The first join of a group writes that there is one, while it waits for others."""
    groups.machine.state.config.initial_rebalance_delay_ms = 60_000
    fail(groups, error)
    member = ClassicMember(groups, "a", instance_id="i")  # a dynamic one gets its id first
    token = member.send_join()
    groups.advance(5_000)
    return E(groups.responses[token].error_code)


def join_as_static_member_again(groups: Groups, error: E) -> E:
    """A static member that has restarted gets its place, which is written."""
    first = ClassicMember(groups, "a", instance_id="i")
    first.join()
    first.sync({first.member_id: assignment({"orders": (0, 1)})})
    fail(groups, error)
    again = ClassicMember(groups, "a", instance_id="i")
    token = again.send_join()
    groups.advance(5_000)
    response = groups.responses[token]
    assert (response.member_id, response.leader) == ("", first.member_id)
    return E(response.error_code)


def join_consumer_group(groups: Groups, error: E) -> E:
    """A classic member of a consumer group is written as any other of its members."""
    assert groups.heartbeat("new", 0, topics=("orders",)).error_code == E.NONE
    member = ClassicMember(groups, "old")
    member.member_id = groups.responses[member.send_join()].member_id
    fail(groups, error)
    token = member.send_join()
    groups.advance(5_000)
    return E(groups.responses[token].error_code)


def join_that_converts(groups: Groups, error: E) -> E:
    """The classic protocol replaces the last member of the consumer protocol."""
    classic_group(groups)
    joined = groups.heartbeat("new", 0, topics=("orders",), instance_id="i")
    assert joined.error_code == E.NONE
    fail(groups, error)
    again = ClassicMember(groups, "new", instance_id="i")
    token = again.send_join()
    groups.advance(5_000)
    return E(groups.responses[token].error_code)


def sync_of_leader(groups: Groups, error: E) -> E:
    """The leader's assignment is written; all who wait for it get the error."""
    member = ClassicMember(groups, "a")
    member.join()
    fail(groups, error)
    return E(result(groups, sync_request(member), 5).error_code)


def leave_last(groups: Groups, error: E) -> E:
    """The last member leaves: the empty generation is written."""
    member = classic_group(groups)
    fail(groups, error)
    identity = m.LeaveGroupRequest.MemberIdentity(member_id=member.member_id)
    return E(result(groups, m.LeaveGroupRequest(group_id="g", members=(identity,)), 5).error_code)


def leave_consumer_group(groups: Groups, error: E) -> E:
    """A classic member leaves a consumer group."""
    member = classic_group(groups)
    groups.heartbeat("new", 0, topics=("orders",))
    fail(groups, error)
    identity = m.LeaveGroupRequest.MemberIdentity(member_id=member.member_id)
    return E(result(groups, m.LeaveGroupRequest(group_id="g", members=(identity,)), 5).error_code)


def heartbeat_of_consumer(groups: Groups, error: E) -> E:
    """A member of the consumer protocol joins."""
    fail(groups, error)
    request = m.ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="a",
        member_epoch=0,
        rebalance_timeout_ms=5_000,
        subscribed_topic_names=("orders",),
        topic_partitions=(),
    )
    return E(result(groups, request, 1).error_code)


def commit_request() -> m.OffsetCommitRequest:
    """The commit of a consumer that assigns itself."""
    kind = m.OffsetCommitRequest
    partition = kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = kind.OffsetCommitRequestTopic(name="orders", partitions=(partition,))
    return kind(group_id="g", topics=(topic,))


def commit(groups: Groups) -> E:
    """The outcome of such a commit."""
    response = result(groups, commit_request(), 9)
    return E(response.topics[0].partitions[0].error_code)


def offset_commit(groups: Groups, error: E) -> E:
    """An offset is committed."""
    fail(groups, error)
    return commit(groups)


def offset_delete(groups: Groups, error: E) -> E:
    """A committed offset is deleted."""
    assert commit(groups) == E.NONE
    fail(groups, error)
    kind = m.OffsetDeleteRequest
    partition = kind.OffsetDeleteRequestPartition(partition_index=0)
    topic = kind.OffsetDeleteRequestTopic(name="orders", partitions=(partition,))
    return E(result(groups, kind(group_id="g", topics=(topic,)), 0).error_code)


def delete_group(groups: Groups, error: E) -> E:
    """A group is deleted with its offsets."""
    assert commit(groups) == E.NONE
    fail(groups, error)
    response = result(groups, m.DeleteGroupsRequest(groups_names=("g",)), 2)
    return E(response.results[0].error_code)


def test_a_stable_offset_fetch_that_times_out_sends_the_consumer_to_another_coordinator() -> None:
    """Consumers before 3.9 do not know COORDINATOR_NOT_AVAILABLE here.

    Source:  GroupCoordinatorService.handleOffsetFetchException.
    """
    groups = Groups(orders=2)
    fail(groups, E.REQUEST_TIMED_OUT)
    groups.send(commit_request(), 9)  # is written, and not committed
    group = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    response = result(groups, m.OffsetFetchRequest(groups=(group,), require_stable=True), 8)
    assert response.groups[0].error_code == E.NOT_COORDINATOR


@pytest.mark.parametrize("of_log", CLIENTS_ERROR, ids=lambda error: error.name)
@pytest.mark.parametrize(
    "write",
    [
        join_new_group,
        join_as_static_member_again,
        join_consumer_group,
        join_that_converts,
        sync_of_leader,
        leave_last,
        leave_consumer_group,
        heartbeat_of_consumer,
        offset_commit,
        offset_delete,
        delete_group,
    ],
)
def test_a_group_gets_an_error_of_a_coordinator(write: Callable[..., E], of_log: E) -> None:
    assert write(Groups(orders=2), of_log) == CLIENTS_ERROR[of_log]


@pytest.mark.parametrize("of_log", CLIENTS_ERROR, ids=lambda error: error.name)
def test_a_member_that_waits_for_the_leader_gets_it_as_well(of_log: E) -> None:
    groups = Groups({"group.initial.rebalance.delay.ms": "1000"}, orders=2)
    tokens = []
    for name in ("a", "b"):
        member = ClassicMember(groups, name)
        member.member_id = groups.responses[member.send_join()].member_id
        tokens.append((member, member.send_join()))
    groups.advance(2_000)
    members = [member for member, _ in tokens]
    for member, token in tokens:
        member.joined(groups.responses[token])
    leader = next(member for member in members if member.is_leader)
    other = next(member for member in members if not member.is_leader)
    waiting = groups.send(sync_request(other), 5)
    fail(groups, of_log)
    result(groups, sync_request(leader), 5)
    assert groups.responses[waiting].error_code == CLIENTS_ERROR[of_log]


def sync_request(member: ClassicMember) -> Any:
    """A SyncGroup without assignments, as all but the leader send it."""
    return m.SyncGroupRequest(
        group_id="g",
        generation_id=member.generation_id,
        member_id=member.member_id,
        protocol_type="consumer",
        protocol_name="cooperative-sticky",
    )


def test_a_group_stays_when_its_first_write_is_committed_after_the_time_out() -> None:
    """Only what the log rejects is taken back. The members that joined meanwhile have their group.

    Source:  CoordinatorRuntime.CoordinatorWriteEvent.run, failCurrentBatch.
    """
    groups = Groups(orders=2)
    fail(groups, E.REQUEST_TIMED_OUT)
    member = ClassicMember(groups, "a")
    member.member_id = groups.responses[member.send_join()].member_id  # the group is written
    token = member.send_join()
    groups.advance(3_000)  # the initial delay of a rebalance
    member.joined(groups.responses[token])
    token = groups.send(sync_request(member), 5)
    groups.advance(2_500)  # the first write is timed out, the assignment waits
    groups.log.mark = None
    assert member.heartbeat() == E.NONE
    assert groups.responses[token].error_code == E.NONE


# --- transactions ---------------------------------------------------------------------------------

Producer = tuple[int, int]


def init(bench: Bench, producer: Producer) -> Any:
    """The next epoch of a producer."""
    return m.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 5


def add_partitions(bench: Bench, producer: Producer) -> Any:
    """A transaction begins with a partition."""
    kind = m.AddPartitionsToTxnRequest
    topic = kind.AddPartitionsToTxnTopic(name=T0[0], partitions=(T0[1],))
    request = kind(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=(topic,),
    )
    return request, 3


def add_offsets(bench: Bench, producer: Producer) -> Any:
    """A transaction begins with the offsets of a group."""
    request = m.AddOffsetsToTxnRequest(
        transactional_id="x", producer_id=producer[0], producer_epoch=producer[1], group_id="g"
    )
    return request, 3


def end(bench: Bench, producer: Producer) -> Any:
    """A transaction ends: its outcome is written."""
    assert bench.add(producer) == E.NONE
    request = m.EndTxnRequest(
        transactional_id="x", producer_id=producer[0], producer_epoch=producer[1], committed=True
    )
    return request, 4


@pytest.mark.parametrize("of_log", CLIENTS_ERROR, ids=lambda error: error.name)
@pytest.mark.parametrize("write", [init, add_partitions, add_offsets, end])
def test_a_producer_gets_an_error_of_a_coordinator(
    write: Callable[[Bench, Producer], Any], of_log: E
) -> None:
    bench = Bench(transaction_version=0)
    request, version = write(bench, bench.producer())
    if of_log == E.REQUEST_TIMED_OUT:
        bench.log.mark = bench.log.end
    else:
        bench.log.refusal = of_log
    token = bench.send(request, version)
    bench.advance(61_000)
    response = bench.given[token]
    if write is add_partitions:
        (topic,) = response.results_by_topic_v3_and_below
        error = topic.results_by_partition[0].partition_error_code
    else:
        error = response.error_code
    assert error == CLIENTS_ERROR[of_log]
