"""Controllers of real clusters come back as these machines, and go on where Kafka stopped."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

import pytest

from minicluster.log.log import Log
from minicluster.log.quorum_state import QuorumState
from minicluster.log.text_files import META_PROPERTIES_NAME, read_properties
from minicluster.protocol.uuids import parse_uuid
from tests.log.controller_directory import read_controller_directory
from tests.quorum.checks import records_of
from tests.quorum.network import Member, Network

LOGS = Path(__file__).parent.parent / "data" / "kafka-logs"
CONTROLLERS = (101, 102, 103)


class Resumed(Network):
    """A quorum whose members begin with the folders of a stopped Kafka cluster."""

    def __init__(self, cluster: str, *, dynamic: bool) -> None:
        self.folder = LOGS / cluster
        self.resume_dynamic = dynamic
        super().__init__(CONTROLLERS, [], seed=3, dynamic=True)

    def format(self, member: Member) -> None:
        folder = self.folder / f"controller-{member.id}"
        member.log, member.stored, torn = read_controller_directory(folder)
        assert torn is None
        directory_id = read_properties(folder / META_PROPERTIES_NAME)["directory.id"]
        member.directory = parse_uuid(directory_id)
        self.dynamic = self.resume_dynamic


def records_in(log: Log) -> list[tuple[int, object]]:
    return [(batch.leader_epoch, value) for batch in log.batches for _, value in records_of(batch)]


@pytest.mark.parametrize(("cluster", "dynamic"), [("cluster", True), ("divergent", False)])
def test_three_controllers_of_kafka_go_on_as_machines(cluster: str, dynamic: bool) -> None:
    network = Resumed(cluster, dynamic=dynamic)
    before = {i: (m.log.end_offset, m.log.last_epoch) for i, m in network.members.items()}
    stored = [m.stored or QuorumState() for m in network.members.values()]
    highest = max(max(s.leader_epoch for s in stored), max(epoch for _, epoch in before.values()))
    # The checks have seen none of Kafka's commits. The common prefix of the logs replaces them,
    # until the new leader's log shows more.
    logs = [records_in(member.log) for member in network.members.values()]
    network.checks.committed = [
        row[0]
        for row in takewhile(lambda row: row[0] == row[1] == row[2], zip(*logs, strict=False))
    ]
    leader = network.wait_for_leader()
    assert network.members[leader].up.epoch > highest
    # Only who has everything that was committed can win.
    assert sorted((epoch, end) for end, epoch in before.values())[1] <= (
        before[leader][1],
        before[leader][0],
    )
    machine = network.members[leader].up
    network.checks.committed = records_in(machine.log)
    assert machine.voters.ids == CONTROLLERS
    assert machine.kraft_version == int(dynamic)
    network.append(leader, b"after Kafka")
    goal = machine.log.end_offset
    network.run_until(lambda: all(m.up.high_watermark == goal for m in network.members.values()))
    ends = [m.log.batches[-5:] for m in network.members.values()]
    assert ends[0] == ends[1] == ends[2]
    for member in network.members.values():
        assert member.committed[-1] == (goal - 1, b"after Kafka")
