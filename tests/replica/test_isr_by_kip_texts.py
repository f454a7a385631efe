"""ISR changes by AlterIsr, as the texts of KIP-497 and KIP-704 have it, and as Kafka shipped it."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.effects import Send
from minicluster.metadata.image.partition import RECOVERING
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages.kip_texts import kip_497, kip_704
from minicluster.replica.broker_context import AlterPartitionItem, AlterPartitionResult
from minicluster.replica.partition.partition import CommittedPartitionState, PendingExpandIsr
from minicluster.replica.to_controller.alter_partition_manager import alter_partition_results
from minicluster.rules import IsrChanges, Rules
from minicluster.values import replace
from tests.replica.manager_kit import ManagerKit
from tests.replica.partition_kit import TOPIC_ID, Bench

SHIPPED = Rules.KAFKA_4_3
KIP_497 = replace(SHIPPED, isr_changes_by=IsrChanges.ALTER_ISR_OF_KIP_497)
KIP_704 = replace(SHIPPED, isr_changes_by=IsrChanges.ALTER_ISR_OF_KIP_704)


# --- KIP-497: acknowledged is not decided -----------------------------------------------------


def acknowledged() -> Bench:
    bench = Bench(rules=KIP_497)
    bench.seed(10)
    bench.lead(replicas=[101, 102], isr=[101])
    bench.fetch(102, 10)
    bench.alter_partition.complete(AlterPartitionResult(acknowledged=True), bench.now_ms)
    return bench


def test_kip_497_an_acknowledged_change_waits_for_the_metadata() -> None:
    bench = acknowledged()
    assert isinstance(bench.partition.isr_state, PendingExpandIsr)
    bench.fetch(102, 10)
    assert len(bench.submitted) == 1, "one change at a time"
    bench.lead(replicas=[101, 102], isr=[101, 102], partition_epoch=2)
    assert bench.partition.isr_state == CommittedPartitionState((101, 102))


def test_kip_497_metadata_of_another_version_lets_the_leader_look_again() -> None:
    bench = acknowledged()
    bench.lead(replicas=[101, 102], isr=[101], partition_epoch=2)
    assert bench.partition.isr_state == CommittedPartitionState((101,))
    bench.fetch(102, 10)
    assert len(bench.submitted) == 2


def test_kip_497_an_acknowledged_change_that_nothing_comes_of_is_requested_again() -> None:
    bench = acknowledged()
    bench.shrink()
    assert len(bench.submitted) == 2
    assert bench.submitted[1] == bench.submitted[0]
    bench.shrink()
    assert len(bench.submitted) == 2, "no second one before the first has a response"


def test_as_shipped_a_proposal_that_waits_for_metadata_is_not_sent_again() -> None:
    bench = Bench()
    bench.seed(10)
    bench.lead(replicas=[101, 102], isr=[101])
    bench.fetch(102, 10)
    bench.respond(ErrorCode.INVALID_UPDATE_VERSION)
    bench.shrink()
    assert len(bench.submitted) == 1


# --- forms ------------------------------------------------------------------------------------


def item(topic: str = "orders", **fields: Any) -> AlterPartitionItem:
    given = {"topic_id": TOPIC_ID, "partition": 6, "leader": 101, "leader_epoch": 5}
    given |= {"partition_epoch": 9, "isr": ((101, 7), (102, 8)), "recovery_state": RECOVERING}
    return AlterPartitionItem(topic=topic, **{**given, **fields})


def sent(rules: Rules, sends_recovery_state: bool = True) -> Send:
    kit = ManagerKit(broker_id=101, broker_epoch=7, rules=rules)
    kit.context.sends_recovery_state = sends_recovery_state
    (send,) = kit.submit(item())
    return send


def test_kip_497s_form_names_the_leader_and_the_version_in_zookeeper() -> None:
    send = sent(KIP_497)
    kind = kip_497.AlterIsrRequest
    part = kind.PartitionData(
        partition_id=6, leader=101, leader_epoch=5, isr=(101, 102), current_zk_version=9
    )
    topic = kind.TopicData(topic="orders", partitions=(part,))
    assert send.request == kind(broker_id=101, broker_epoch=7, topics=(topic,))
    assert send.version == 0


@pytest.mark.parametrize(("sends", "version"), [(True, 1), (False, 0)])
def test_kip_704s_form_has_the_unclean_flag_from_version_1_on(sends: bool, version: int) -> None:
    send = sent(KIP_704, sends)
    kind = kip_704.AlterIsrRequest
    part = kind.PartitionData(
        partition_index=6,
        leader_epoch=5,
        new_isr=(101, 102),
        new_is_unclean=True,
        current_isr_version=9,
    )
    topic = kind.TopicData(name="orders", partitions=(part,))
    assert send.request == kind(broker_id=101, broker_epoch=7, topics=(topic,))
    assert send.version == version


def test_what_the_responses_mean() -> None:
    kind = kip_497.AlterIsrResponse
    parts = (kind.PartitionData(partition_id=0), kind.PartitionData(partition_id=1, error_code=74))
    printed = alter_partition_results(kind(topics=(kind.TopicData(topic="a", partitions=parts),)))
    assert printed[("a", 0)] == AlterPartitionResult(acknowledged=True)
    assert printed[("a", 1)] == AlterPartitionResult(error=ErrorCode.FENCED_LEADER_EPOCH)

    other = kip_704.AlterIsrResponse
    data = other.PartitionData(
        leader_id=1, leader_epoch=2, isr=(1,), is_unclean=True, current_isr_version=3
    )
    found = alter_partition_results(other(topics=(other.TopicData(name="a", partitions=(data,)),)))
    assert found == {
        ("a", 0): AlterPartitionResult(
            leader=1, leader_epoch=2, isr=(1,), recovery_state=RECOVERING, partition_epoch=3
        )
    }


def test_a_response_by_name_finds_its_item() -> None:
    kit = ManagerKit(broker_id=101, rules=KIP_704)
    kit.submit(item("a", partition=0), "the item")
    kind = kip_704.AlterIsrResponse
    data = kind.PartitionData(error_code=ErrorCode.INVALID_REQUEST)
    kit.respond(kind(topics=(kind.TopicData(name="a", partitions=(data,)),)))
    assert kit.take_ended() == {"the item": ErrorCode.INVALID_REQUEST}
