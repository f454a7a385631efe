"""The remains of a disk after a crash; the entries that a cluster's logger keeps."""

from __future__ import annotations

import logging
from uuid import UUID

import pytest
import structlog

from minicluster.actors.nodes.disk import Disk
from minicluster.actors.recording.logging import ClusterLog
from minicluster.errors import UserError
from minicluster.log.batch import Record, RecordBatch


def batch(offset: int) -> RecordBatch:
    return RecordBatch.of([Record(offset, 0, None, b"x")], leader_epoch=1)


def disk() -> Disk:
    built = Disk(node_id=1, directory_ids=(UUID(int=7),))
    log = built.log("orders-0")
    log.append(batch(0))
    log.flush()
    log.append(batch(1))
    log.append(batch(2))
    built.write("quorum-state", "epoch 4")
    return built


WORDS = [("none", 3), ("torn", 2), ("unflushed", 1), ("all", 0)]


@pytest.mark.parametrize(("lose_tail", "left"), WORDS)
def test_a_crash_takes_what_its_word_names_and_never_the_small_files(
    lose_tail: str, left: int
) -> None:
    it = disk()
    lost = it.crash(lose_tail)  # type: ignore[arg-type]
    assert it.log("orders-0").end_offset == left
    assert sum(lost.values()) == 3 - left
    assert it.read("quorum-state") == "epoch 4"
    assert it.directory_ids == (UUID(int=7),)


def test_a_wiped_disk_remembers_nothing_and_has_other_directories() -> None:
    it = disk()
    it.wipe([UUID(int=8)])
    assert it.logs == {}
    assert it.read("quorum-state") is None
    assert it.directory_ids == (UUID(int=8),)


def test_an_unknown_kind_of_crash_is_refused_in_one_line() -> None:
    with pytest.raises(UserError, match="none, torn, unflushed, all") as error:
        disk().crash("some")  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_two_clusters_log_on_their_own_clocks_and_leave_the_users_set_up_alone() -> None:
    before = structlog.get_config()
    first, second = ClusterLog(lambda: 1_500), ClusterLog(lambda: 2_500, level=logging.WARNING)
    first.root.bind(actor="broker-1").info("isr.shrink", topic="orders", isr=[1, 2])
    second.root.bind(actor="broker-1").info("filtered")
    second.root.bind(actor="broker-1").warning("kept")
    assert first.lines() == ["     1.500s broker-1         isr.shrink topic=orders isr=[1, 2]"]
    assert [entry["event"] for entry in second.entries] == ["kept"]
    assert structlog.get_config() == before
