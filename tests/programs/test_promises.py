"""What programs promise without an assertion: each promise broken, and nearly so.

A test's end judges them (``MiniCluster.stop``); ``verify`` says how much it has looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from minicluster import MiniCluster, Report
from minicluster.actors.recording.live_checks import InvariantViolated
from minicluster.verify.reporting.report_data import RuleResult
from tests.programs.promising import (
    bills,
    fails,
    reads,
    reads_without_a_group,
    skips_to_the_end,
)
from tests.programs.service import source

Story = Callable[[MiniCluster], object]


def skipped_by_a_reset(cluster: MiniCluster, commits: bool = False) -> None:
    """A member that has committed nothing is killed, and its successor begins at the end."""
    one = cluster.app("one", partial(reads, commits, auto_offset_reset="latest"))
    cluster.run_for("5s")
    cluster.app("source", partial(source, 10, 0.1))
    cluster.run_for("5s")
    one.kill()
    cluster.app("more", partial(source, 10, 0.1))
    cluster.run_for("20s")
    cluster.app("two", partial(reads, auto_offset_reset="latest"))
    cluster.run_for("10s")
    cluster.app("last", partial(source, 1))
    cluster.run_for("5s")


def skipped_on_purpose(cluster: MiniCluster) -> None:
    cluster.app("source", partial(source, 20, 0.1))
    cluster.app("one", skips_to_the_end)
    cluster.run_for("20s")
    cluster.app("last", partial(source, 1))
    cluster.run_for("5s")


def read(cluster: MiniCluster, beyond: int = 0, count: int = 10**9) -> None:
    """A member commits what it read, or something else."""
    cluster.app("source", partial(source, 40, 0.5))
    cluster.app("one", partial(reads, beyond=beyond, count=count))
    cluster.run_for("90s")


def stays_behind_in_a_disturbance(cluster: MiniCluster) -> None:
    """The same where a link is cut for good, which excuses a lag."""
    cluster.app("one", partial(reads, count=10))
    cluster.app("source", partial(source, 40, 0.5))
    cluster.cut("app(one)", cluster.brokers[0])
    cluster.run_for("90s")


def billed(cluster: MiniCluster, *how: object, wait: str) -> None:
    cluster.app("billing", partial(bills, *how))
    cluster.run_for(wait)


def killed_in_a_transaction(cluster: MiniCluster) -> None:
    billed(cluster, 60, wait="5s")
    cluster.apps[0].kill()
    cluster.run_for("60s")


def failed(cluster: MiniCluster, read: bool = False, restart: bool = False) -> None:
    app = cluster.app("service", fails)
    cluster.run_for("2s")
    if restart:
        app.restart()
        cluster.run_for("0.5s")
    assert not read or isinstance(app.error, ValueError)


def two_without_a_group(cluster: MiniCluster, other: str = "orders") -> None:
    cluster.app("one", reads_without_a_group)
    cluster.app("two", partial(reads_without_a_group, group_id=other))
    cluster.app("source", partial(source, 20, 0.2))
    cluster.run_for("10s")


def handed_over(cluster: MiniCluster) -> None:
    """A member is paused beyond its session: what it has not committed is handed out again."""
    one = cluster.app("one", partial(reads, commits=False, session_timeout_ms=6_000))
    cluster.app("source", partial(source, 40, 0.5))
    cluster.run_for("10s")
    cluster.app("two", partial(reads, session_timeout_ms=6_000))
    cluster.run_for("10s")
    one.pause(lasting="20s")
    cluster.run_for("40s")


BROKEN: dict[str, tuple[str, Story, str]] = {
    "a reset skips records": ("P1", skipped_by_a_reset, "auto.offset.reset"),
    "a commit beyond what was read": (
        "P2", partial(read, beyond=1), "one committed offset .*accused is the program"),
    "commits end": ("P3", partial(read, count=10), "accused is one: handed the records"),
    "a transaction is never ended": (
        "P4", lambda cluster: billed(cluster, 0, False, wait="40s"), "billing runs and left"),
    "a program ends within its transaction": (
        "P4", lambda cluster: billed(cluster, 1, False, False, wait="10s"), "has ended and left"),
    "a program dies": ("P5", failed, "service died at 1.* s of ValueError: no such order"),
    "two programs commit without a group": (
        "P6", two_without_a_group, "one and two were handed the same .* accused are the programs"),
}  # fmt: skip
KEPT: dict[str, tuple[str, Story]] = {
    "a member that commits is succeeded": ("P1", partial(skipped_by_a_reset, commits=True)),
    "a program goes to the end on purpose": ("P1", skipped_on_purpose),
    "a commit of what was read": ("P2", read),
    "commits stop while a link is cut": ("P2", stays_behind_in_a_disturbance),
    "commits go on": ("P3", read),
    "a transaction takes long": ("P4", lambda cluster: billed(cluster, 15, wait="40s")),
    "a transaction has just begun": ("P4", lambda cluster: billed(cluster, 60, wait="15s")),
    "two programs commit for two groups": ("P2", partial(two_without_a_group, other="bills")),
    "a partition is handed over": ("P6", handed_over),
}  # fmt: skip
EXEMPT: dict[str, tuple[str, Story]] = {
    "a program is killed within its transaction": ("P4", killed_in_a_transaction),
    "the test reads the error": ("P5", partial(failed, read=True)),
}


def judged(report: Report, rule: str) -> RuleResult:
    return next(result for result in report.rules if result.id == rule)


@pytest.mark.parametrize(("rule", "story", "says"), BROKEN.values(), ids=[*BROKEN])
def test_a_program_that_breaks_a_promise_fails_the_test(rule: str, story: Story, says: str) -> None:
    with pytest.raises(InvariantViolated, match=says) as caught, MiniCluster(seed=11) as cluster:
        cluster.create_topic("orders", partitions=1, min_isr=2)
        story(cluster)
    assert {finding.rule for finding in caught.value.findings} == {rule}


@pytest.mark.parametrize(("rule", "story"), KEPT.values(), ids=[*KEPT])
def test_a_program_that_nearly_does_is_innocent(rule: str, story: Story) -> None:
    with MiniCluster(seed=12) as cluster:
        cluster.create_topic("orders", partitions=1, min_isr=2)
        story(cluster)
        report = cluster.verify(engine="process")
    assert report.valid, report.to_text()
    assert judged(report, rule).looked_at


@pytest.mark.parametrize(("rule", "story"), EXEMPT.values(), ids=[*EXEMPT])
def test_what_a_test_does_to_a_program_accuses_nobody(rule: str, story: Story) -> None:
    with MiniCluster(seed=13) as cluster:
        cluster.create_topic("orders", partitions=1, min_isr=2)
        story(cluster)
        report = cluster.verify(engine="process")
    assert judged(report, rule).exempt and not judged(report, rule).findings
