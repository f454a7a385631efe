"""AlterIsr as the texts of KIP-497 and KIP-704 have it."""

from __future__ import annotations

from typing import Any

from minicluster.metadata.image.partition import RECOVERING
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages.kip_texts import kip_497, kip_704
from minicluster.protocol.records import PartitionRecord, VersionedRecord
from minicluster.rules import IsrChanges, Rules
from minicluster.values import replace
from tests.controller.applying import apply_record
from tests.controller.kit import Cluster

KIP_497 = replace(Rules.KAFKA_4_3, isr_changes_by=IsrChanges.ALTER_ISR_OF_KIP_497)
KIP_704 = replace(Rules.KAFKA_4_3, isr_changes_by=IsrChanges.ALTER_ISR_OF_KIP_704)


def started(rules: Rules) -> Cluster:
    cluster = Cluster(rules=rules)
    cluster.start(1, 2, 3)
    assert cluster.create("orders", (1, 2, 3)).error_code == 0
    return cluster


def send_497(cluster: Cluster, isr: tuple[int, ...]) -> ErrorCode:
    kind = kip_497.AlterIsrRequest
    values: dict[str, Any] = {
        "leader": 1,
        "leader_epoch": cluster.partition("orders").leader_epoch,
        "current_zk_version": cluster.partition("orders").partition_epoch,
    }
    topics = (kind.TopicData(topic="orders", partitions=(kind.PartitionData(isr=isr, **values),)),)
    response = cluster.request(kind(broker_id=1, broker_epoch=cluster.epoch(1), topics=topics), 0)
    return ErrorCode(response.topics[0].partitions[0].error_code)


def test_kip_497_responds_on_receipt_and_writes_afterwards() -> None:
    cluster = started(KIP_497)
    before = cluster.end
    assert send_497(cluster, (1, 2)) is ErrorCode.NONE
    assert cluster.end == before and cluster.partition("orders").isr == (1, 2, 3)
    cluster.run(cluster.now_ms)
    partition = cluster.partition("orders")
    assert (partition.isr, partition.partition_epoch) == ((1, 2), 1)


def test_kip_497_of_two_proposals_of_one_version_the_second_is_acknowledged_and_fails() -> None:
    cluster = started(KIP_497)
    assert send_497(cluster, (1, 2)) is ErrorCode.NONE
    assert send_497(cluster, (1, 3)) is ErrorCode.NONE
    cluster.run(cluster.now_ms)
    partition = cluster.partition("orders")
    assert (partition.isr, partition.partition_epoch) == ((1, 2), 1)


def test_kip_497_an_acknowledged_change_is_lost_with_its_controller() -> None:
    cluster = started(KIP_497)
    assert send_497(cluster, (1, 2)) is ErrorCode.NONE
    cluster.take(cluster.machine.on_renounce(cluster.now_ms))
    cluster.take(cluster.machine.on_claim(2, cluster.end, cluster.now_ms))
    cluster.run(cluster.now_ms)
    assert cluster.partition("orders").isr == (1, 2, 3)
    assert send_497(cluster, (1, 3)) is ErrorCode.NONE
    cluster.run(cluster.now_ms)
    assert cluster.partition("orders").isr == (1, 3), "it does not come after all"


def test_kip_497_a_member_that_was_fenced_meanwhile_voids_the_proposal() -> None:
    cluster = started(KIP_497)
    assert send_497(cluster, (1, 2)) is ErrorCode.NONE
    cluster.run(cluster.now_ms)
    assert send_497(cluster, (1, 2, 3)) is ErrorCode.NONE
    cluster.fence(3)
    cluster.run(cluster.now_ms)
    assert cluster.partition("orders").isr == (1, 2)


def send_704(
    cluster: Cluster, isr: tuple[int, ...], version: int = 1, **fields: Any
) -> kip_704.AlterIsrResponse.PartitionData:
    kind = kip_704.AlterIsrRequest
    partition = cluster.partition("orders")
    values: dict[str, Any] = {
        "leader_epoch": partition.leader_epoch,
        "current_isr_version": partition.partition_epoch,
    }
    part = kind.PartitionData(new_isr=isr, **(values | fields))
    topics = (kind.TopicData(name="orders", partitions=(part,)),)
    request = kind(broker_id=1, broker_epoch=cluster.epoch(1), topics=topics)
    response = cluster.request(request, version)
    assert response.error_code == 0
    found = response.topics[0].partitions[0]
    assert isinstance(found, kip_704.AlterIsrResponse.PartitionData)
    return found


def unclean(cluster: Cluster) -> None:
    """Make orders-0 a partition whose leader was elected uncleanly."""
    partition = cluster.partition("orders")
    record = PartitionRecord(
        partition_id=0,
        topic_id=cluster.topic_id("orders"),
        replicas=partition.replicas,
        isr=(1,),
        leader=1,
        leader_recovery_state=RECOVERING,
        leader_epoch=1,
        partition_epoch=4,
        directories=partition.directories,
    )
    apply_record(cluster.machine.state, VersionedRecord(record, 2), cluster.end)


def test_kip_704_responds_with_the_state_that_was_committed() -> None:
    cluster = started(KIP_704)
    response = send_704(cluster, (1, 2))
    assert (response.error_code, response.isr, response.current_isr_version) == (0, (1, 2), 1)
    assert cluster.partition("orders").isr == (1, 2)


def test_kip_704_a_leader_clears_the_flag_and_never_sets_it() -> None:
    cluster = started(KIP_704)
    refused = send_704(cluster, (1,), new_is_unclean=True)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    unclean(cluster)
    still = send_704(cluster, (1,), new_is_unclean=True)
    assert (still.error_code, still.is_unclean, still.current_isr_version) == (0, True, 4)
    grown = send_704(cluster, (1, 2), new_is_unclean=True)
    assert grown.error_code == ErrorCode.INVALID_REQUEST
    done = send_704(cluster, (1, 2))
    assert (done.error_code, done.is_unclean, done.isr) == (0, False, (1, 2))
    assert not cluster.partition("orders").is_recovering


def test_version_0_has_no_flag_and_so_clears_it() -> None:
    cluster = started(KIP_704)
    unclean(cluster)
    assert send_704(cluster, (1,), version=0).is_unclean is False
    assert not cluster.partition("orders").is_recovering


def test_neither_form_is_served_where_alter_partition_is() -> None:
    cluster = started(Rules.KAFKA_4_3)
    for kind in (kip_497.AlterIsrRequest, kip_704.AlterIsrRequest):
        response = cluster.request(kind(broker_id=1, broker_epoch=cluster.epoch(1)), 0)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
