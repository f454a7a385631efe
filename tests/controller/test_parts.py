"""Large events in parts: the same as in one step, but other inputs come between."""

from __future__ import annotations

from dataclasses import replace
from itertools import repeat
from typing import Any
from uuid import UUID

import pytest

from minicluster.controller.deciding import config_changes
from minicluster.controller.deciding.decision import Decision
from minicluster.controller.effects import Append
from minicluster.controller.parts import whole
from minicluster.controller.state.broker_heartbeat_manager import BrokerIdAndEpoch
from minicluster.metadata.image import folded_run, topics
from minicluster.metadata.image.configs import BROKER, MIN_ISR, TOPIC
from minicluster.metadata.snapshot import image_from_records
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.records import (
    NoOpRecord,
    PartitionRecord,
    TopicRecord,
    VersionedRecord,
)
from tests.controller.kit import Cluster

SIZE = 4  # of a part in these stories, in elements
TOPICS, PARTITIONS = 3, 8
PARTS = 27  # of the creation of these topics


@pytest.fixture(autouse=True)
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folded_run, "RECORDS_MAX", SIZE)


def paused(*, held: bool = False) -> Cluster:
    """A cluster of three brokers whose next events are in parts."""
    cluster = Cluster(elements_per_part=SIZE)
    cluster.start(1, 2, 3)
    cluster.pauses, cluster.held = True, held
    return cluster


def creation(first: int = 0, topics: int = TOPICS, **fields: Any) -> m.CreateTopicsRequest:
    Request = m.CreateTopicsRequest
    return Request(
        topics=tuple(
            Request.CreatableTopic(
                name=f"t{number}", num_partitions=PARTITIONS, replication_factor=3
            )
            for number in range(first, first + topics)
        ),
        **fields,
    )


def finish(cluster: Cluster) -> int:
    """Take all parts of an event; their number."""
    parts = 1
    while cluster.machine.is_deciding:
        cluster.next_part()
        parts += 1
    return parts


def test_nothing_is_appended_before_the_last_part() -> None:
    cluster = paused(held=True)
    end = cluster.end
    token = cluster.send(creation())
    while cluster.machine.is_deciding:
        assert cluster.end == end and token not in cluster.responses
        cluster.next_part()
    kinds = [type(cluster.log[offset].record) for offset in range(end, cluster.end)]
    assert kinds == [TopicRecord, *[PartitionRecord] * PARTITIONS] * TOPICS
    assert token not in cluster.responses  # it waits for its commit, as any
    cluster.commit()
    assert cluster.responses[token].records_written == tuple(range(end, cluster.end))
    assert cluster.machine.state.check_indexes() == ()


def test_an_event_has_parts_of_its_decision_of_the_bytes_and_of_their_applying() -> None:
    cluster = paused()
    cluster.send(creation())
    assert finish(cluster) == PARTS


def test_a_small_event_is_one_step() -> None:
    cluster = Cluster(pauses=True)
    cluster.start(1, 2, 3)
    assert {topic.error_code for topic in cluster.request(creation()).topics} == {0}


def test_responses_of_earlier_events_leave_between_two_parts() -> None:
    cluster = paused(held=True)
    cluster.pauses = False
    earlier = cluster.send(creation(first=10, topics=1))
    cluster.pauses = True
    later = cluster.send(creation())
    cluster.commit()
    assert cluster.machine.is_deciding
    assert earlier in cluster.responses and later not in cluster.responses
    committed = cluster.machine.committed_image
    assert committed.topics.named("t10") and not committed.topics.named("t0")
    finish(cluster)
    cluster.commit()
    assert later in cluster.responses


@pytest.mark.parametrize("part", range(1, PARTS))
def test_with_the_leadership_an_event_ends_and_nothing_of_it_stays(part: int) -> None:
    """QuorumController: an append that fails with NotLeaderException."""
    cluster = paused()
    before, end = cluster.machine.image, cluster.end
    cluster.machine.latest_controller = 102
    token = cluster.send(creation())
    for _ in range(part - 1):
        cluster.next_part()
    assert cluster.machine.is_deciding
    cluster.take(cluster.machine.on_renounce(cluster.now_ms))
    rejected = cluster.responses[token]
    assert {topic.error_code for topic in rejected.response.topics} == {ErrorCode.NOT_CONTROLLER}
    assert "node 102" in rejected.response.topics[0].error_message
    assert rejected.records_written == ()
    assert cluster.machine.image.digest() == before.digest() and cluster.end == end
    cluster.next_part()  # the message that is under way
    assert cluster.end == end and not cluster.timers

    cluster.pauses = False
    cluster.take(cluster.machine.on_claim(2, cluster.end, cluster.now_ms))
    assert {topic.error_code for topic in cluster.request(creation()).topics} == {0}
    assert cluster.machine.state.check_indexes() == ()


def test_a_snapshot_in_the_midst_ends_an_event_as_well() -> None:
    cluster = paused()
    token = cluster.send(creation())
    records = [cluster.log[offset] for offset in sorted(cluster.log)]
    image = image_from_records(records, offset=cluster.end - 1)
    cluster.take(cluster.machine.on_snapshot(image, cluster.end, cluster.now_ms))
    assert cluster.responses[token].response.topics[0].error_code == ErrorCode.NOT_CONTROLLER
    assert cluster.machine.image is image and not cluster.machine.is_deciding


def test_an_event_whose_batch_the_quorum_rejects_fails_as_any() -> None:
    cluster = paused(held=True)
    base_offset = cluster.end
    token = cluster.send(creation())
    finish(cluster)
    cluster.take(cluster.machine.on_append_rejected(base_offset, "too large", cluster.now_ms))
    failed = cluster.responses[token].response.topics[0].error_code
    assert failed == ErrorCode.UNKNOWN_SERVER_ERROR and cluster.resigned


@pytest.mark.parametrize("part", range(1, PARTS))
def test_records_of_the_quorum_between_two_parts_move_those_of_the_event(part: int) -> None:
    """A voter is added meanwhile: its VotersRecord is in the log before the event's batch."""
    cluster = paused()
    token = cluster.send(creation())
    for _ in range(part - 1):
        cluster.next_part()
    cluster.end += 1
    cluster.machine.on_control_records(cluster.end)
    before = cluster.end
    finish(cluster)
    assert cluster.responses[token].records_written == tuple(range(before, cluster.end))
    assert cluster.machine.state.offset == cluster.end - 1
    assert cluster.machine.state.check_indexes() == ()
    cluster.pauses = False
    assert cluster.create("more", (1, 2)).error_code == 0


def test_a_fault_in_the_midst_makes_the_controller_resign() -> None:
    cluster = paused()
    end, before = cluster.end, cluster.machine.image
    cluster.topic_ids = repeat(UUID(int=7))  # which cannot be applied twice
    token = cluster.send(creation())
    assert finish(cluster) > TOPICS
    failed = cluster.responses[token].response.topics[0].error_code
    assert failed == ErrorCode.UNKNOWN_SERVER_ERROR
    assert cluster.resigned and not cluster.machine.is_active
    assert cluster.end == end and cluster.machine.image.digest() == before.digest()


def test_a_periodic_task_in_parts_fences_a_broker() -> None:
    cluster = paused()
    cluster.pauses = False
    cluster.request(creation())
    cluster.run(cluster.now_ms + 8_000)
    for broker_id in (1, 2):
        cluster.heartbeat(broker_id)
    cluster.pauses = True
    while not cluster.machine.is_deciding:
        cluster.run(cluster.now_ms + 100)
    assert not is_fenced(cluster, 3)
    cluster.take(cluster.machine.on_renounce(cluster.now_ms))
    assert not is_fenced(cluster, 3)
    cluster.pauses = False
    cluster.take(cluster.machine.on_claim(2, cluster.end, cluster.now_ms))
    cluster.run(cluster.now_ms + 8_000)
    for broker_id in (1, 2):
        cluster.heartbeat(broker_id)
    cluster.run(cluster.now_ms + 3_000)
    assert is_fenced(cluster, 3)
    assert cluster.machine.state.check_indexes() == ()


def is_fenced(cluster: Cluster, broker_id: int) -> bool:
    broker = cluster.machine.image.cluster.broker(broker_id)
    assert broker is not None
    return broker.fenced


def test_the_contact_of_a_heartbeat_that_waits_counts_when_it_comes() -> None:
    """Source: QuorumController.processBrokerHeartbeat, trackBrokerHeartbeat."""
    cluster = paused()
    token = cluster.send(creation())
    cluster.now_ms += 8_000
    for broker_id in (1, 2, 3):
        waiting = m.BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=cluster.epoch(broker_id)
        )
        cluster.machine.on_heartbeat_waits(waiting, cluster.now_ms)
    finish(cluster)
    cluster.pauses = False
    cluster.run(cluster.now_ms + 8_000)
    assert token in cluster.responses
    assert [is_fenced(cluster, broker_id) for broker_id in (1, 2, 3)] == [False] * 3
    cluster.run(cluster.now_ms + 3_000)
    assert [is_fenced(cluster, broker_id) for broker_id in (1, 2, 3)] == [True] * 3


@pytest.mark.parametrize(("waited_ms", "late"), [(999, False), (1_000, True)])
def test_the_deadline_of_a_request_counts_while_it_waits(waited_ms: int, late: bool) -> None:
    """Source: KafkaEventQueue, an event with a deadline."""
    cluster = Cluster()
    cluster.start(1, 2, 3)
    created = cluster.request(creation(timeout_ms=1_000), waited_ms=waited_ms)
    error = ErrorCode.REQUEST_TIMED_OUT if late else ErrorCode.NONE
    assert {topic.error_code for topic in created.topics} == {error}
    if not late:
        state = m.DeleteTopicsRequest.DeleteTopicState(name="t0")
        deletion = m.DeleteTopicsRequest(topics=(state,), timeout_ms=1_000)
        gone = cluster.request(deletion, waited_ms=1_000)
        assert gone.responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("waited_ms", [999, 1_000])
def test_c17_a_heartbeat_that_has_waited_for_too_long_is_a_contact_alone(waited_ms: int) -> None:
    """With half of the heartbeat interval its deadline passes; nothing is unfenced by it."""
    cluster = Cluster()
    cluster.register(0)
    heartbeats = cluster.machine.state.active_heartbeats()
    cluster.now_ms += 100
    arrived_ms = cluster.now_ms
    request = m.BrokerHeartbeatRequest(
        broker_id=0, broker_epoch=cluster.epoch(0), current_metadata_offset=cluster.end - 1
    )
    end = cluster.end
    cluster.machine.on_heartbeat_waits(request, arrived_ms)
    cluster.now_ms += waited_ms
    response = cluster.request(request, waited_ms=waited_ms)
    if waited_ms < 1_000:
        assert not is_fenced(cluster, 0)
        return
    entry = heartbeats._entry(0)
    assert entry.metadata_offset == end - 1
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert is_fenced(cluster, 0) and cluster.end == end
    assert heartbeats._contacts[BrokerIdAndEpoch(0, cluster.epoch(0))] == arrived_ms
    old = replace(request, broker_epoch=-1, current_metadata_offset=7)
    assert cluster.request(old, waited_ms=waited_ms).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert entry.metadata_offset == end - 1


def test_a_decision_of_several_batches_goes_back_to_the_state_between_two() -> None:
    """The quorum commits batches; nothing of an event in parts is committed before its end."""
    cluster = paused(held=True)
    cluster.commit()
    cluster.machine._max_records = 5
    records = (VersionedRecord(NoOpRecord(), 0),) * 12
    end = cluster.end
    parts = cluster.machine._carry_out(Decision(records=records), 0)
    effects, offsets = whole(parts)
    appends = [effect for effect in effects if isinstance(effect, Append)]
    assert [(a.base_offset - end, len(a.values)) for a in appends] == [(0, 5), (5, 5), (10, 2)]
    assert offsets == tuple(range(end, end + 12))
    cluster.take(cluster.machine.on_committed(end + 5, 0))
    cluster.take(cluster.machine.on_renounce(0))
    assert cluster.machine.next_offset == end + 5


def quotas() -> m.AlterClientQuotasRequest:
    Request = m.AlterClientQuotasRequest
    return Request(
        entries=tuple(
            Request.EntryData(
                entity=(Request.EntityData(entity_type="user", entity_name=f"user-{n % 9}"),),
                ops=(Request.OpData(key="producer_byte_rate", value=1.0 + n),),
            )
            for n in range(12)
        )
    )


def credentials() -> m.AlterUserScramCredentialsRequest:
    Request = m.AlterUserScramCredentialsRequest
    return Request(
        deletions=(Request.ScramCredentialDeletion(name="nobody", mechanism=1),),
        upsertions=tuple(
            Request.ScramCredentialUpsertion(
                name=f"user-{n % 9}",
                mechanism=1,
                iterations=4_096,
                salt=b"salt",
                salted_password=b"password",
            )
            for n in range(12)
        ),
    )


@pytest.mark.parametrize("request_", [quotas(), credentials()], ids=["quotas", "credentials"])
def test_what_is_written_of_users_is_the_same_in_parts_and_in_one_step(request_: Any) -> None:
    at_once, in_parts = Cluster(), paused()
    at_once.start(1, 2, 3)
    expected = at_once.request(request_)
    token = in_parts.send(request_)
    assert in_parts.machine.is_deciding and token not in in_parts.responses
    assert finish(in_parts) > 12 // SIZE
    assert in_parts.responses[token].response == expected
    assert in_parts.machine.image.digest() == at_once.machine.image.digest()


@pytest.mark.parametrize("kind", [BROKER, TOPIC])
def test_a_cleared_elr_is_folded_in_parts_and_seen_before_or_after(
    kind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KIP-966: one ClearElrRecord changes as many partitions as there are."""
    monkeypatch.setattr(topics, "CLEARED_PER_PART", SIZE)
    monkeypatch.setattr(config_changes, "SEEN_PER_ELEMENT", 1)
    cluster = Cluster(elr=True, elements_per_part=SIZE)
    cluster.start(1, 2, 3)
    for name in ("a", "b"):
        cluster.create(name, *[(1, 2, 3)] * 4 * SIZE, configs={MIN_ISR: "2"})
    cluster.fence(2, 3)
    before = cluster.machine.image
    assert all(partition.elr for _, _, partition in before.topics.partitions())

    cluster.pauses = True
    Request = m.IncrementalAlterConfigsRequest
    resource = Request.AlterConfigsResource(
        resource_type=kind,
        resource_name="a" if kind == TOPIC else "",
        configs=(Request.AlterableConfig(name=MIN_ISR, value="1"),),
    )
    cluster.send(Request(resources=(resource,)))
    parts = 0
    while cluster.machine.is_deciding:
        assert cluster.machine.image.topics is before.topics
        cluster.next_part()
        parts += 1
    cleared = {"a", "b"} if kind == BROKER else {"a"}
    assert parts >= 4 * len(cleared)
    for topic, _, partition in cluster.machine.image.topics.partitions():
        assert bool(partition.elr) == (topic.name not in cleared)
    assert cluster.machine.state.check_indexes() == ()
    committed = [cluster.log[offset] for offset in sorted(cluster.log)]
    assert image_from_records(committed).digest() == cluster.machine.image.digest()
