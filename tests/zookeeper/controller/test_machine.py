"""The queue of the controller on ZooKeeper: one event after another."""

from __future__ import annotations

from minicluster.protocol import ErrorCode
from tests.zookeeper.controller.kit import Kit, alter_outcome, alter_request


def test_an_event_begins_when_the_one_before_it_has_ended() -> None:
    kit = Kit()
    kit.start(1, 2, 3)
    kit.create_topic("orders", (1, 2, 3))
    machine = kit.machines[1]
    first = alter_request(kit, sender=1, isr=(1, 2), leader_epoch=0, epoch=0)
    second = alter_request(kit, sender=1, isr=(1, 3), leader_epoch=0, epoch=0)
    said_during_the_first = []

    def the_second_arrives() -> None:
        said_during_the_first.append(machine.on_request("second", second, 1, kit.now_ms))
        assert not machine.is_idle

    kit.before_write = the_second_arrives
    kit.request(1, first, 1)

    assert said_during_the_first == [[]]
    # Decided together, both would have found epoch 0, and one write of ZooKeeper would have failed.
    outcomes = [alter_outcome(response) for response in kit.responses]
    assert outcomes == [ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION]
    assert kit.state("orders").isr == (1, 2) and machine.is_idle
