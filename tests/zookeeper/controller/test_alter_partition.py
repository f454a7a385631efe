"""AlterPartition whose write meets another one in ZooKeeper."""

from __future__ import annotations

import pytest

from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol import ErrorCode
from minicluster.values import replace
from minicluster.zookeeper.server.operations import Check, Multi, SetData
from minicluster.zookeeper.znodes import paths
from tests.zookeeper.controller.kit import Kit, alter

ISR = (2, 3)
STATE = paths.partition_state(TopicPartition("orders", 0))


def meets(kit: Kit, isr: tuple[int, ...], **values: int) -> ErrorCode:
    """The controller removes replica 1, while the state has been written with another ISR."""
    kit.start(1, 2, 3)
    kit.create_topic("orders", (2, 3, 1))

    def write() -> None:
        state = replace(kit.state("orders"), isr=isr, **values)
        check = Check(paths.CONTROLLER_EPOCH, 1)
        kit.do(kit.sessions[1], Multi((check, SetData(STATE, state.to_json().encode(), 0))))

    kit.before_write = write
    return alter(kit, 2, ISR, 0, 0)


def test_a_write_whose_response_was_lost_is_recognized() -> None:
    """The client of ZooKeeper sends it again; the znode has the state and the next version."""
    kit = Kit()
    assert meets(kit, ISR) is ErrorCode.NONE
    assert alter(kit, 2, (2, 3, 1), 0, 1) is ErrorCode.NONE
    assert kit.state("orders").isr == (2, 3, 1)
    assert kit.broken() == set()


def test_as_kafka_shipped_it_the_leader_gets_a_refusal_and_waits_for_the_next_epoch() -> None:
    assert meets(Kit(own_writes_recognized=False), ISR) is ErrorCode.INVALID_UPDATE_VERSION


@pytest.mark.parametrize("values", [{"leader": 3}, {"leader_epoch": 1}, {"controller_epoch": 0}])
def test_a_write_of_another_one_is_a_conflict(values: dict[str, int]) -> None:
    assert meets(Kit(), ISR, **values) is ErrorCode.INVALID_UPDATE_VERSION
    assert meets(Kit(), (3, 2)) is ErrorCode.INVALID_UPDATE_VERSION
