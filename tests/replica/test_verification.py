"""Leaders have coordinators verify transactions before the first batch of each (KIP-890)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from minicluster.log import Record, RecordBatch, Records
from minicluster.log.batch import TRANSACTIONAL_BIT
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    ProduceRequest,
)
from tests.replica.cluster import Cluster

COORDINATOR = 2
PRODUCER = 7
LATER = "Unable to verify the partition has been added to the transaction. Underlying error: "

Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
OfTopic = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
OfPartition = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult


class Coordinator:
    """It responds to each request with the next errors, and with none in the end."""

    def __init__(self, *errors: ErrorCode | None) -> None:
        self.errors = list(errors)
        self.requests: list[Any] = []

    def __call__(self, request: Any) -> Any:
        self.requests.append(request)
        error = self.errors.pop(0) if self.errors else ErrorCode.NONE
        if error is None:
            return None
        return AddPartitionsToTxnResponse(
            results_by_transaction=tuple(
                Result(
                    transactional_id=one.transactional_id,
                    topic_results=tuple(
                        OfTopic(
                            name=topic.name,
                            results_by_partition=tuple(
                                OfPartition(partition_index=i, partition_error_code=error)
                                for i in topic.partitions
                            ),
                        )
                        for topic in one.topics
                    ),
                )
                for one in request.transactions
            )
        )


def cluster_with(
    *errors: ErrorCode | None, static: Mapping[str, str] | None = None
) -> tuple[Cluster, Coordinator]:
    """Broker 1 leads orders-0, broker 2 coordinates."""
    cluster = Cluster(2, static=static or {})
    cluster.create_topic("__transaction_state", replicas=(COORDINATOR,))
    cluster.create_topic(replicas=(1,))
    coordinator = Coordinator(*errors)
    cluster.coordinator = coordinator
    return cluster, coordinator


def send(
    cluster: Cluster,
    version: int = 11,
    *,
    sequence: int = 0,
    epoch: int = 0,
    producer: int = PRODUCER,
    transactional_id: str = "bank",
) -> int:
    batch = RecordBatch.of(
        [Record(0, cluster.now_ms, None, b"v")],
        leader_epoch=-1,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        attributes=TRANSACTIONAL_BIT,
    )
    data = ProduceRequest.PartitionProduceData(index=0, records=Records((batch,)))
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=1,
        timeout_ms=1_000,
        topic_data=(ProduceRequest.TopicProduceData(name="orders", partition_data=(data,)),),
    )
    return cluster.request(1, request, version)


def outcome(cluster: Cluster, token: int) -> tuple[str, str | None]:
    data = cluster.produced(token)
    return ErrorCode.for_code(data.error_code).name, data.error_message


def test_the_first_batch_waits_for_the_coordinator_and_later_ones_do_not() -> None:
    cluster, coordinator = cluster_with()
    first = send(cluster)
    assert not cluster.has_response(first)
    cluster.advance(10)
    assert outcome(cluster, first) == ("NONE", None)
    second = send(cluster, sequence=1)
    assert outcome(cluster, second) == ("NONE", None)
    (request,) = coordinator.requests
    (requested,) = request.transactions
    assert requested == AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        transactional_id="bank",
        producer_id=PRODUCER,
        producer_epoch=0,
        verify_only=True,
        topics=(AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="orders", partitions=(0,)),),
    )


def test_by_transaction_version_2_the_leader_adds_the_partition() -> None:
    cluster, coordinator = cluster_with()
    send(cluster, 12)
    assert not coordinator.requests
    cluster.advance(10)
    assert not coordinator.requests[0].transactions[0].verify_only


@pytest.mark.parametrize(
    ("version", "error", "expected"),
    [
        (11, ErrorCode.NOT_COORDINATOR, ("NOT_ENOUGH_REPLICAS", LATER + "NOT_COORDINATOR")),
        (11, ErrorCode.PRODUCER_FENCED, ("INVALID_PRODUCER_EPOCH", None)),
        (11, ErrorCode.TRANSACTION_ABORTABLE, ("TRANSACTION_ABORTABLE", None)),
        (
            10,
            ErrorCode.TRANSACTION_ABORTABLE,
            ("INVALID_TXN_STATE", "Partition was not added to the transaction"),
        ),
        (
            11,
            ErrorCode.CONCURRENT_TRANSACTIONS,
            ("NOT_ENOUGH_REPLICAS", LATER + "CONCURRENT_TRANSACTIONS"),
        ),
        (11, None, ("NOT_ENOUGH_REPLICAS", LATER + "NETWORK_EXCEPTION")),
    ],
)
def test_a_producer_gets_an_error_that_its_version_has(
    version: int, error: ErrorCode | None, expected: tuple[str, str | None]
) -> None:
    cluster, _ = cluster_with(error)
    token = send(cluster, version)
    cluster.advance(31_000)
    assert outcome(cluster, token) == expected
    assert cluster.partition(1).log_end_offset == 0


def test_by_transaction_version_2_the_leader_waits_for_the_end_of_the_last_transaction() -> None:
    busy = ErrorCode.CONCURRENT_TRANSACTIONS
    cluster, coordinator = cluster_with(busy, busy)
    token = send(cluster, 12)
    cluster.advance(60)
    assert outcome(cluster, token) == ("NONE", None)
    assert len(coordinator.requests) == 3
    cluster, _ = cluster_with(*[busy] * 20)
    token = send(cluster, 12)
    cluster.advance(200)
    assert outcome(cluster, token) == ("CONCURRENT_TRANSACTIONS", None)


def test_a_second_try_ends_the_first_one_that_has_not_left_yet() -> None:
    cluster, coordinator = cluster_with(None)
    in_flight = send(cluster)
    first, second, fenced = send(cluster), send(cluster), send(cluster, epoch=-1)
    assert outcome(cluster, first) == ("NOT_ENOUGH_REPLICAS", LATER + "NETWORK_EXCEPTION")
    assert not cluster.has_response(second)
    cluster.advance(29_000)
    assert len(coordinator.requests) == 1
    cluster.advance(2_000)
    assert outcome(cluster, in_flight)[0] == "NOT_ENOUGH_REPLICAS"
    assert outcome(cluster, fenced)[0] == "INVALID_PRODUCER_EPOCH"
    assert outcome(cluster, second)[0] == "NONE"


def test_a_broker_that_verifies_nothing_appends_at_once() -> None:
    cluster, coordinator = cluster_with(
        static={"transaction.partition.verification.enable": "false"}
    )
    assert outcome(cluster, send(cluster)) == ("NONE", None)
    assert not coordinator.requests


def test_the_transactions_of_one_request_have_their_errors_by_the_first_of_them() -> None:
    """AddPartitionsToTxnManager keeps the abilities of a client per request to a coordinator."""
    abortable = ErrorCode.TRANSACTION_ABORTABLE
    cluster, coordinator = cluster_with(ErrorCode.NONE, abortable, abortable)
    send(cluster)
    new = send(cluster, 11, producer=8, transactional_id="shop")
    old = send(cluster, 10, producer=9, transactional_id="farm")
    cluster.advance(10)
    assert [len(request.transactions) for request in coordinator.requests] == [1, 2]
    assert outcome(cluster, new) == outcome(cluster, old) == ("TRANSACTION_ABORTABLE", None)
    alone = send(cluster, 10, producer=9, transactional_id="farm")
    cluster.advance(10)
    assert outcome(cluster, alone)[0] == "INVALID_TXN_STATE"
