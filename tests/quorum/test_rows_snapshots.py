"""Rows I75-I82 of the conformance cases: snapshots, offered, downloaded and made."""

from __future__ import annotations

import pytest

from minicluster.log.checkpoint import decode_snapshot
from minicluster.log.log import Log
from minicluster.log.quorum_state import QuorumState
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    FetchRequest,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from minicluster.protocol.records import FeatureLevelRecord, VersionedRecord
from minicluster.protocol.topics import METADATA_TOPIC
from minicluster.quorum.effects import LoadSnapshot, SnapshotInstalled, Truncated
from minicluster.quorum.errors import IllegalArgument
from minicluster.quorum.settings import QuorumSettings
from minicluster.quorum.state.voters import VoterSet
from tests.quorum.probe import Probe, data_batch, log_of

RECORD = VersionedRecord(FeatureLevelRecord(name="metadata.version", feature_level=30), 0)


def leading(*epochs: tuple[int, int], **kwargs: object) -> tuple[Probe, int]:
    """A leader of two voters, all of whose log is committed."""
    probe = Probe((1, 2), log=log_of(*epochs), **kwargs)  # type: ignore[arg-type]
    epoch = probe.become_leader()
    probe.fetch(2, probe.log.end_offset, epoch)
    assert probe.machine.high_watermark == probe.log.end_offset
    return probe, epoch


def snapshot_of(probe: Probe, snapshot_id: tuple[int, int], *, trim: bool = True) -> None:
    assert probe.machine.create_snapshot(snapshot_id, (RECORD,), probe.now_ms)
    if trim:
        assert probe.machine.node.log.delete_before_snapshot(snapshot_id)


def test_i75_who_is_behind_the_log_start_is_sent_to_the_snapshot() -> None:
    probe, epoch = leading((1, 3))
    end = probe.log.end_offset
    snapshot_of(probe, (end, epoch))
    for offset, last_epoch in ((end - 2, 1), (0, 0)):
        fetched = probe.fetch(2, offset, last_epoch)
        assert fetched is not None
        assert (fetched.snapshot_id.end_offset, fetched.snapshot_id.epoch) == (end, epoch)
        assert not fetched.records


def test_i75_offset_0_is_sent_to_the_snapshot_even_if_the_log_still_begins_there() -> None:
    probe, _ = leading((1, 3))
    snapshot_of(probe, (3, 1), trim=False)
    fetched = probe.fetch(2, 0, 0)
    assert fetched is not None and fetched.snapshot_id.end_offset == 3


def test_i77_the_log_start_is_valid_with_the_snapshots_epoch_only() -> None:
    probe, _epoch = leading((2, 3), (3, 1))
    snapshot_of(probe, (3, 2))
    valid = probe.fetch(2, 3, 2)
    assert valid is not None and valid.snapshot_id.epoch == -1 and valid.records
    invalid = probe.fetch(2, 3, 3)
    assert invalid is not None
    assert (invalid.snapshot_id.end_offset, invalid.snapshot_id.epoch) == (3, 2)


def test_i79_a_snapshot_is_handed_out_in_parts() -> None:
    probe, _ = leading((1, 3))
    snapshot_of(probe, (3, 1))
    content = probe.log.snapshots[(3, 1)]
    got = b""
    while len(got) < len(content):
        part = probe.fetch_snapshot(2, (3, 1), position=len(got), max_bytes=100)
        assert part.error_code == 0 and part.size == len(content) and part.position == len(got)
        assert 0 < len(part.unaligned_records) <= 100
        got += part.unaligned_records
    assert decode_snapshot(got).records == (RECORD,)


@pytest.mark.parametrize(
    ("snapshot_id", "position", "epoch", "topic", "error"),
    [
        ((9, 9), 0, 0, METADATA_TOPIC, ErrorCode.SNAPSHOT_NOT_FOUND),
        ((0, 0), 0, 0, METADATA_TOPIC, ErrorCode.SNAPSHOT_NOT_FOUND),
        ((3, 1), 0, 0, "elsewhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((3, 1), -1, 0, METADATA_TOPIC, ErrorCode.POSITION_OUT_OF_RANGE),
        ((3, 1), 1 << 20, 0, METADATA_TOPIC, ErrorCode.POSITION_OUT_OF_RANGE),
        ((3, 1), 0, -1, METADATA_TOPIC, ErrorCode.FENCED_LEADER_EPOCH),
        ((3, 1), 0, +1, METADATA_TOPIC, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_i79_refusals_of_fetch_snapshot(
    snapshot_id: tuple[int, int], position: int, epoch: int, topic: str, error: ErrorCode
) -> None:
    probe, led = leading((1, 3), dynamic=True)
    snapshot_of(probe, (3, 1))
    part = probe.fetch_snapshot(2, snapshot_id, position=position, epoch=led + epoch, topic=topic)
    assert part.error_code == error
    assert (part.snapshot_id.end_offset, part.snapshot_id.epoch, part.size) == (0, 0, 0)
    assert part.unaligned_records == b""


def test_i79_fetching_a_snapshot_counts_for_check_quorum() -> None:
    probe, _epoch = leading((1, 3))
    snapshot_of(probe, (3, 1))
    probe.advance(2_900)
    probe.fetch_snapshot(2, (3, 1))
    probe.advance(2_900)
    assert probe.role == "Leader"
    probe.advance(100)
    assert probe.role == "Resigned"


def test_i80_a_snapshot_must_end_where_something_is_committed() -> None:
    unknown = Probe((1, 2), log=log_of((1, 3)))
    led = unknown.become_leader()
    with pytest.raises(IllegalArgument):
        unknown.machine.create_snapshot((1, 1), (RECORD,), 0)
    probe, epoch = leading((1, 3))
    end = probe.log.end_offset
    assert led == epoch
    for snapshot_id in ((end + 1, epoch), (end, epoch + 1), (end + 2, epoch), (2, 1)):
        with pytest.raises(IllegalArgument):
            probe.machine.create_snapshot(snapshot_id, (RECORD,), 0)
    snapshot_of(probe, (end, epoch))
    assert not probe.machine.create_snapshot((end, epoch), (RECORD,), 0)
    assert not probe.machine.create_snapshot((3, 1), (RECORD,), 0)  # below the log start


def test_i82_a_bootstrap_checkpoint_is_never_offered() -> None:
    probe, _ = leading(dynamic=True)
    fetched = probe.fetch(2, 0, 0)
    assert fetched is not None
    assert fetched.snapshot_id.epoch == -1 and fetched.records


def test_i82_a_follower_fetches_no_bootstrap_checkpoint() -> None:
    stored = QuorumState(leader_id=2, leader_epoch=1, data_version=0)
    probe = Probe((1, 2), stored=stored)
    (send,) = probe.sent(FetchRequest)
    probe.respond_to_fetch(send, leader=2, epoch=1, snapshot_id=(0, 0))
    assert not probe.sent(FetchSnapshotRequest)
    assert probe.sent(FetchRequest)


# --- a follower that downloads one ---------------------------------------------------------------


def downloading(log: Log | None = None) -> tuple[Probe, bytes]:
    """A follower that has just been sent to the snapshot (3, 1), and the snapshot's bytes."""
    source, _ = leading((1, 3))
    snapshot_of(source, (3, 1))
    content = source.log.snapshots[(3, 1)]
    stored = QuorumState(leader_id=2, leader_epoch=4, data_version=0)
    settings = QuorumSettings(append_linger_ms=0, fetch_snapshot_max_bytes=100)
    probe = Probe((1, 2), stored=stored, log=log, settings=settings)
    (send,) = probe.sent(FetchRequest)
    probe.respond_to_fetch(send, leader=2, epoch=4, snapshot_id=(3, 1))
    return probe, content


def hand_out(probe: Probe, content: bytes) -> list[int]:
    """Respond to its FetchSnapshots; -> their positions."""
    positions = []
    while sends := probe.sent(FetchSnapshotRequest):
        requested = sends[0].request.topics[0].partitions[0]
        positions.append(requested.position)
        part = FetchSnapshotResponse.PartitionSnapshot(
            snapshot_id=FetchSnapshotResponse.SnapshotId(end_offset=3, epoch=1),
            current_leader=FetchSnapshotResponse.LeaderIdAndEpoch(leader_id=2, leader_epoch=4),
            size=len(content),
            position=requested.position,
            unaligned_records=content[
                requested.position : requested.position + sends[0].request.max_bytes
            ],
        )
        topic = FetchSnapshotResponse.TopicSnapshot(name=METADATA_TOPIC, partitions=(part,))
        probe.respond(sends[0], FetchSnapshotResponse(topics=(topic,)))
    return positions


def test_a_download_replaces_the_log_and_fetching_goes_on_behind_it() -> None:
    probe, content = downloading()
    positions = hand_out(probe, content)
    assert positions == list(range(0, len(content), 100))
    assert (probe.log.start_offset, probe.log.end_offset) == (3, 3)
    assert probe.machine.high_watermark == 3
    loads = [effect for effect in probe.effects if isinstance(effect, LoadSnapshot)]
    assert [load.snapshot_id for load in loads] == [(3, 1)]
    assert decode_snapshot(loads[0].content).records == (RECORD,)
    (send,) = probe.sent(FetchRequest)
    requested = send.request.topics[0].partitions[0]
    assert (requested.fetch_offset, requested.last_fetched_epoch) == (3, 1)


def test_a_change_of_leader_drops_the_download() -> None:
    probe, _ = downloading()
    assert probe.sent(FetchSnapshotRequest)
    probe.begin(5, 2)
    assert probe.sent(FetchRequest) and not probe.sent(FetchSnapshotRequest)


def test_z58_a_snapshot_of_a_lower_epoch_than_the_own_tail_is_installed() -> None:
    """Kafka 4.3 falls over it (``snapshot_of_lower_epoch_is_fatal``)."""
    tail = Log()
    tail.append(data_batch(0, 3, b"never", b"committed", b"by", b"anyone"))
    tail.flush()
    probe, content = downloading(tail)
    hand_out(probe, content)
    assert SnapshotInstalled((3, 1)) in probe.effects
    assert (probe.log.start_offset, probe.log.end_offset, probe.log.last_epoch) == (3, 3, 1)


@pytest.mark.parametrize(("records", "is_truncated"), [(2, False), (3, False), (4, True)])
def test_a_snapshot_that_ends_below_the_own_end_truncates(records: int, is_truncated: bool) -> None:
    """Only then is anything lost that the snapshot does not have; the log begins at its end.

    Source:  KafkaRaftLog.truncateToLatestSnapshot.
    """
    tail = Log()
    tail.append(data_batch(0, 0, *[b"x"] * records))
    tail.flush()
    probe, content = downloading(tail)
    hand_out(probe, content)
    reported = [one for one in probe.effects if isinstance(one, Truncated | SnapshotInstalled)]
    truncated = [Truncated(3, last_epoch=1)] if is_truncated else []
    assert reported == [*truncated, SnapshotInstalled((3, 1))]
    assert (probe.log.start_offset, probe.log.end_offset) == (3, 3)


def test_a_snapshot_carries_the_voters_of_its_offset() -> None:
    probe, epoch = leading(dynamic=True)
    end = probe.log.end_offset
    snapshot_of(probe, (end, epoch))
    control = decode_snapshot(probe.log.snapshots[(end, epoch)]).control
    assert control[0].kraft_version == 1
    assert VoterSet.from_record(control[1]).ids == (1, 2)
    restarted = Probe((1, 2), dynamic=True, log=probe.log, stored=probe.stored)
    assert restarted.machine.kraft_version == 1
    assert restarted.machine.voters.ids == (1, 2)
