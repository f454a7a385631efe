"""A leader below IBP 2.7-IV2 writes its ISR: a write that is sent again is no rival of itself."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from minicluster.zookeeper.broker.isr_writer import IsrWriter
from minicluster.zookeeper.server.operations import Code, GetData, Result, SetData, Stat
from minicluster.zookeeper.znodes.partition_state import PartitionState

ORDERS = TopicPartition("orders", 0)
WRITTEN = PartitionState(leader=1, leader_epoch=3, controller_epoch=2, isr=(1, 2))


def written_again(held: PartitionState) -> AlterPartitionResponse.PartitionData:
    """The response after BADVERSION, where the znode holds a state at version 8."""
    data = AlterPartitionRequest.PartitionData(
        partition_index=0, leader_epoch=3, new_isr=(1, 2), partition_epoch=7
    )
    topic = AlterPartitionRequest.TopicData(topic_name="orders", partitions=(data,))
    process = IsrWriter(1, 0).write(AlterPartitionRequest(topics=(topic,)), {}, {ORDERS: 2}, 0)
    (request,) = next(process)
    assert isinstance(request, SetData) and request.version == 7
    (request,) = process.send((Result(Code.BADVERSION),))
    assert isinstance(request, GetData)
    stat = Stat(czxid=1, mzxid=9, version=8, ephemeral_owner=0)
    found: Any = None
    try:
        process.send((Result(Code.OK, data=held.to_json().encode(), stat=stat),))
    except StopIteration as ended:
        found = ended.value
    return found.topics[0].partitions[0]


def test_its_own_state_is_what_it_wanted() -> None:
    response = written_again(WRITTEN)
    assert (response.error_code, response.partition_epoch, response.isr) == (0, 8, (1, 2))


@pytest.mark.parametrize("isr", [(1, 2, 3), (2, 1)])
def test_another_state_is_of_the_controller(isr: tuple[int, ...]) -> None:
    other = PartitionState(leader=1, leader_epoch=3, controller_epoch=2, isr=isr)
    assert written_again(other).error_code == ErrorCode.INVALID_UPDATE_VERSION
