"""Messages that only KIP texts have, byte by byte, and the partition state in ZooKeeper."""

from __future__ import annotations

import pytest

from minicluster.protocol import ProtocolError, decode, encode
from minicluster.protocol.messages.kip_texts import kip_497, kip_589, kip_704
from minicluster.zookeeper.znodes.partition_state import PartitionState


def test_alter_isr_of_kip_497_has_plain_lengths() -> None:
    request = kip_497.AlterIsrRequest
    partition = request.PartitionData(
        partition_id=3, leader=1, leader_epoch=5, isr=(1, 2), current_zk_version=9
    )
    message = request(
        broker_id=1,
        broker_epoch=77,
        topics=(request.TopicData(topic="ab", partitions=(partition,)),),
    )
    data = bytes.fromhex(
        "00000001 000000000000004d 00000001 00026162 00000001"
        "00000003 00000001 00000005 00000002 00000001 00000002 00000009"
    )
    assert encode(message, 0) == data
    assert decode(request, data, 0) == message


def test_alter_isr_of_kip_704_drops_the_unclean_flag_in_version_0() -> None:
    request = kip_704.AlterIsrRequest
    partition = request.PartitionData(leader_epoch=5, new_isr=(1,), new_is_unclean=True)
    message = request(topics=(request.TopicData(name="ab", partitions=(partition,)),))
    new, old = encode(message, 1), encode(message, 0)
    assert len(new) == len(old) + 1
    assert decode(request, new, 1) == message
    assert not decode(request, old, 0).topics[0].partitions[0].new_is_unclean
    assert message.broker_epoch == -1


def test_alter_replica_state_of_kip_589_has_wide_error_codes() -> None:
    request = kip_589.AlterReplicaStateRequest
    topic = request.TopicData(topic="ab", partitions=(request.PartitionData(partition_id=7),))
    message = request(broker_id=1, broker_epoch=2, event_reason="disk", topics=(topic,))
    assert encode(message, 0) == bytes.fromhex(
        "00000001 0000000000000002 01 056469736b 02 036162 02 00000007 00 00 00"
    )
    response = kip_589.AlterReplicaStateResponse(error_code=1 << 20)
    assert decode(kip_589.AlterReplicaStateResponse, encode(response, 0), 0) == response
    assert encode(response, 0)[:4] == b"\x00\x10\x00\x00"


def test_the_partition_state_names_recovery_only_while_it_goes_on() -> None:
    state = PartitionState(leader=1, leader_epoch=2, controller_epoch=3, isr=(1, 2))
    assert state.to_json() == (
        '{"controller_epoch":3,"leader":1,"version":1,"leader_epoch":2,"isr":[1,2]}'
    )
    recovering = PartitionState(
        leader=1, leader_epoch=2, controller_epoch=3, isr=(1,), leader_recovery_state=1
    )
    assert '"leader_recovery_state":1' in recovering.to_json()
    assert '"is_unclean":true' in recovering.to_json(unclean_flag=True)
    assert '"is_unclean":false' in state.to_json(unclean_flag=True)
    for value in (state, recovering):
        assert PartitionState.from_json(value.to_json()) == value
        assert PartitionState.from_json(value.to_json(unclean_flag=True).encode()) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[1]", "no JSON object"),
        ('{"isr":1}', "field isr"),
        ('{"isr":["a"]}', "field "),
        ('{"isr":[],"leader":true}', "field leader"),
        (
            '{"isr":[],"leader":1,"leader_epoch":1,"controller_epoch":1,"is_unclean":1}',
            "is_unclean",
        ),
    ],
)
def test_a_bad_partition_state_names_its_field(text: str, why: str) -> None:
    with pytest.raises(ProtocolError, match=why):
        PartitionState.from_json(text)
