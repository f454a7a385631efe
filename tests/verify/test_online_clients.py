"""The rules about clients while a cluster runs: on the hand-written runs that Spark judges."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from minicluster.protocol.records import PartitionChangeRecord
from minicluster.rules import Rules
from minicluster.verify.online.checker import OnlineChecker
from tests.verify import trace_cases_clients as cases
from tests.verify import trace_cases_groups as of_groups
from tests.verify.build import change, cluster
from tests.verify.build_run import RunBuilder
from tests.verify.trace_kit import plain_run

Case = Callable[[], RunBuilder]

BAD: dict[str, tuple[Case, ...]] = {
    "F1": (cases.f1_bad,),
    "F6": (cases.f6_bad, cases.f6_beyond_the_response, cases.f6_raised),
    "F9": (cases.f9_bad,),
    "F18": (cases.f18_client,),
    "H5": (of_groups.h5_bad, of_groups.h5_beyond),
    "H7": (of_groups.h7_acknowledged,),
}
LEFT_TO_SPARK = (cases.f1_other, cases.f9_acknowledged)
NEAR = (
    *(case for several in cases.NEAR.values() for case in several),
    of_groups.h5_near,
    of_groups.h7_near,
)


def rules_of(run: RunBuilder, *, log_first: bool = True, rules: Rules | None = None) -> set[str]:
    """The rules that a run breaks, with the log committed before the events or after them."""
    checker = OnlineChecker(rules=rules)
    findings = []

    def commit() -> None:
        for batch in run.log.batches:
            checker.commit(batch)
            findings.extend(checker.clients.on_commit())

    if log_first:
        commit()
    events = [*run.rows["partition_event"], *run.rows["client_record"]]
    for row in sorted(events, key=lambda row: row["seq"]):
        if "kind" in row:
            findings += checker.clients.on_partition_event(row)
        else:
            findings += checker.clients.on_response([row])
    if not log_first:
        commit()
    findings += checker.clients.on_values(run.rows["client_record"])
    return {finding.rule for finding in findings}


@pytest.mark.parametrize("log_first", [True, False])
@pytest.mark.parametrize(
    ("rule", "case"), [(rule, case) for rule, several in BAD.items() for case in several]
)
def test_a_run_that_breaks_a_rule_is_found(rule: str, case: Case, log_first: bool) -> None:
    assert rules_of(case(), log_first=log_first) == {rule}


@pytest.mark.parametrize("log_first", [True, False])
@pytest.mark.parametrize("case", [*NEAR, *LEFT_TO_SPARK])
def test_a_near_miss_passes(case: Case, log_first: bool) -> None:
    assert rules_of(case(), log_first=log_first) == set()


def short(
    *changes: PartitionChangeRecord, leader_epoch: int = 1, run: RunBuilder | None = None
) -> RunBuilder:
    """Offset 1 is acknowledged, and then 2 leads with a log that ends before it."""
    run = cases.sent(cases.leads(plain_run() if run is None else run, end=2), 1, "b")
    for record in changes:
        run.log.op(record)
    cases.leads(run, broker=2, epoch=leader_epoch, end=1, commit=False)
    return cases.read(run, 0, "c", hw=1, broker=2)


def test_the_last_member_of_an_isr_may_lose_records() -> None:
    assert rules_of(short(change((2, 3), leader=2))) == {"F1"}
    assert rules_of(short(change((2,), leader=2))) == set()


def test_an_unclean_election_may_lose_records() -> None:
    unclean = change((1,), leader=-1), change((2,), leader=2, recovery=1)
    grows = change((2, 3), recovery=0)
    assert rules_of(short(*unclean, grows, leader_epoch=2)) == set()


def test_a_kafka_whose_new_incarnations_stay_in_the_isr_may_lose_records() -> None:
    def before_elr() -> RunBuilder:
        return short(change((2, 3), leader=2), run=RunBuilder(cluster(mv=20)))

    assert rules_of(before_elr()) == set()
    assert rules_of(before_elr(), rules=Rules()) == {"F1"}


def test_an_election_that_is_not_in_the_log_yet_is_no_finding() -> None:
    run = cases.sent(cases.leads(plain_run(), end=2), 1, "b")
    assert rules_of(cases.leads(run, broker=2, epoch=1, end=1, commit=False)) == set()


OTHER = "AAAAAAAAAAAAAAAAAACryg"


def test_a_name_that_two_topics_had_is_the_one_that_the_broker_had_by_then() -> None:
    def after_another(broker: int) -> RunBuilder:
        again = plain_run()
        again.partition("become_leader", topic_id=OTHER, broker=broker, leo=0)
        for table in ("partition_event", "client_record"):
            again.rows[table] += cases.f6_bad().rows[table]
        return again

    assert rules_of(cases.f6_bad()) == {"F6"}
    assert rules_of(after_another(1)) == {"F6"}, "the later one of broker 1"
    assert rules_of(after_another(2)) == {"F6"}, "another broker is behind"
    of_none = cases.f6_bad()
    for row in of_none.rows["partition_event"]:
        row["broker"] = 2
    assert rules_of(of_none) == set()
