"""Examples of the rules in `directories.py`."""

from __future__ import annotations

from minicluster.verify.directories import no_broker_leads_from_a_failed_directory
from tests.verify.examples.example import breaks, keeps
from tests.verify.handwritten.log import cluster
from tests.verify.handwritten.run import EVERYBODY, RunBuilder, plain_run


def _in_directory(broker: int, *, failed_ms: int, online: bool = False) -> RunBuilder:
    """1 leads; the directory of a replica failed, or is online again; the run ends at 60 s."""
    run = RunBuilder(cluster(), ended_at_ms=60_000).partition("append", broker=broker, leo=1)
    run.replica_log(broker, (0, "a"))
    for row in run.rows["replica_log"]:
        row |= {"incarnation": f"{broker}-1", "directory": "A", "online": online}
    failure = {"step": 1, "action": "fail_dir", "phase": "start", "targets": f"[{broker}]"}
    run.row("fault", {**failure, "seq": failed_ms})
    run.seq = 60_000 - 1
    return run.committed()


@breaks(no_broker_leads_from_a_failed_directory)
def d6_bad() -> RunBuilder:
    """Directory A, with the log of leader 1, failed 59 s before the end of the run, and no record
    reports it."""
    return _in_directory(1, failed_ms=1_000)


def _led_and_failed(*events: tuple[str, str, str]) -> RunBuilder:
    """A directory of leader 1 fails, or is repaired (``fail_dir``), and the leader appends."""
    run = plain_run().partition("become_leader", directory="A", **EVERYBODY)
    for action, phase, directory in events:
        if action == "fail_dir":
            failure = {"targets": "[1]", "phase": phase, "directory": directory}
            run.row("fault", {"action": action, **failure})
        else:
            run.partition(action, directory=directory, leo=1, offset=0, **EVERYBODY)
    return run


@breaks(no_broker_leads_from_a_failed_directory)
def d6_leads_offline() -> RunBuilder:
    """Leader 1 appends to its log in directory A, which it has found to be offline."""
    return _led_and_failed(("fail_dir", "note", "A"), ("append", "", "A"))


@keeps(no_broker_leads_from_a_failed_directory)
def d6_near_disk() -> RunBuilder:
    """The directory of leader 1 is online again, and that of follower 2 is not."""
    run = _in_directory(1, failed_ms=1_000, online=True)
    run.rows["replica_log"] += _in_directory(2, failed_ms=1_000).rows["replica_log"]
    return run


@keeps(no_broker_leads_from_a_failed_directory)
def d6_near_just_failed() -> RunBuilder:
    """Directory A, with the log of leader 1, failed one second before the end of the run."""
    return _in_directory(1, failed_ms=59_000)


@keeps(no_broker_leads_from_a_failed_directory)
def d6_near_leads_elsewhere() -> RunBuilder:
    """Leader 1 appends in directory A before that fails, then in B, and in A once it is
    repaired."""
    failed = ("append", "", "A"), ("fail_dir", "note", "A"), ("append", "", "B")
    return _led_and_failed(*failed, ("fail_dir", "stop", "A"), ("append", "", "A"))
