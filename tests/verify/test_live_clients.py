"""The histories of clients while a cluster runs, on the hand-written runs of their rules."""

from __future__ import annotations

import random

import pytest

from minicluster.protocol.records import PartitionChangeRecord
from minicluster.rules import Rules
from minicluster.verify.histories.clients import TopicNames, ValuesAtOffsets
from minicluster.verify.histories.held_logs import HeldLogs
from minicluster.verify.histories.live_clients import MAY_HAVE_LOST, LiveClients
from minicluster.verify.judging import Judge
from minicluster.verify.log_fold import LogFold
from minicluster.verify.promises import promises_of
from minicluster.verify.rules.every import RULES
from tests.verify.examples import clients as cases
from tests.verify.examples import replicas, transactions
from tests.verify.examples.by_rule import RUNS_NEAR, Case, each
from tests.verify.handwritten.clients import leads, read, sent
from tests.verify.handwritten.log import change, cluster
from tests.verify.handwritten.run import TOPIC_ID, RunBuilder, plain_run

OF_CLIENTS = ("F1", "F6", "F9", "F18", "H5", "H7")
BAD = {
    "F1": (cases.f1_bad,),
    "F6": (cases.f6_bad, cases.f6_beyond_the_response, cases.f6_raised),
    "F9": (cases.f9_bad, cases.f9_acknowledged, cases.f9_in_a_deleted_topic),
    "F18": (replicas.f18_client,),
    "H5": (transactions.h5_bad, transactions.h5_beyond),
    "H7": (transactions.h7_acknowledged,),
}
ONLY_AFTERWARDS = (cases.f1_other,)
NEAR = (
    *(case for rule in OF_CLIENTS[:4] for case in RUNS_NEAR[rule]),
    transactions.h5_near,
    transactions.h7_near,
)


def judged(
    run: RunBuilder, *, log_first: bool = True, rules: Rules | None = None, window: int = 100
) -> Judge:
    """A run as it comes, with the log committed before the events or after them."""
    judge = Judge("r", [rule for rule in RULES if rule.id in OF_CLIENTS])
    promises, logs = promises_of(rules), HeldLogs(None)
    log = LogFold(judge, promises)
    clients = LiveClients(judge, log.committed, promises, kept_by=logs.kept_by, window=window)

    def commit() -> None:
        for batch in run.log.batches:
            log.commit(batch)
            clients.on_commit()

    if log_first:
        commit()
    names = TopicNames(run.rows["partition_event"])
    events = [*run.rows["partition_event"], *run.rows["client_record"]]
    for row in sorted(events, key=lambda row: row["seq"]):
        if "kind" in row:
            logs.on_partition_event(row)
            clients.on_partition_event(row)
        else:
            clients.on_response([row | {"topic_id": names.id_in(row)}])
    if not log_first:
        commit()
    assert judge.crashes == {}
    return judge


def rules_of(run: RunBuilder, *, log_first: bool = True, rules: Rules | None = None) -> set[str]:
    judge = judged(run, log_first=log_first, rules=rules)
    return {finding.rule for finding in judge.take_new()}


@pytest.mark.parametrize("log_first", [True, False])
@pytest.mark.parametrize(("rule", "case"), each(BAD))
def test_a_run_that_breaks_a_rule_is_found(rule: str, case: Case, log_first: bool) -> None:
    assert rules_of(case(), log_first=log_first) == {rule}


@pytest.mark.parametrize("log_first", [True, False])
@pytest.mark.parametrize("case", [*NEAR, *ONLY_AFTERWARDS], ids=lambda case: case.name)
def test_a_near_miss_passes(case: Case, log_first: bool) -> None:
    assert rules_of(case(), log_first=log_first) == set()


def short(
    *changes: PartitionChangeRecord, leader_epoch: int = 1, run: RunBuilder | None = None
) -> RunBuilder:
    """Offset 1 is acknowledged, and then 2 leads with a log that ends before it."""
    run = sent(leads(plain_run() if run is None else run, end=2), 1, "b")
    for record in changes:
        run.log.op(record)
    leads(run, broker=2, epoch=leader_epoch, end=1, commit=False)
    return read(run, 0, "c", hw=1, broker=2)


def test_the_last_member_of_an_isr_may_lose_records() -> None:
    assert rules_of(short(change((2, 3), leader=2))) == {"F1"}
    assert rules_of(short(change((2,), leader=2))) == set()


def test_an_unclean_election_may_lose_records() -> None:
    unclean = change((1,), leader=-1), change((2,), leader=2, recovery=1)
    judge = judged(short(*unclean, change((2, 3), recovery=0), leader_epoch=2))
    assert judge.take_new() == []
    assert judge.tally("F6").exempt[MAY_HAVE_LOST]


def test_a_kafka_whose_new_incarnations_stay_in_the_isr_may_lose_records() -> None:
    def before_elr() -> RunBuilder:
        return short(change((2, 3), leader=2), run=RunBuilder(cluster(mv=20)))

    assert rules_of(before_elr()) == set()
    assert rules_of(before_elr(), rules=Rules()) == {"F1"}


def test_an_election_that_is_not_in_the_log_yet_is_no_finding() -> None:
    run = sent(leads(plain_run(), end=2), 1, "b")
    judge = judged(leads(run, broker=2, epoch=1, end=1, commit=False))
    assert judge.take_new() == []
    assert judge.tally("F1").looked_at == 1


def test_a_value_is_compared_within_the_window_and_beyond_it_the_rule_says_so() -> None:
    def values(between: int) -> Judge:
        run = read(leads(plain_run(), end=100), 1, "b", hw=100)
        for offset in range(between):
            read(run, 2 + offset, "x", hw=100)
        return judged(read(run, 1, "c", hw=100), window=5)

    near, far = values(4), values(5)
    assert [finding.rule for finding in near.take_new()] == ["F9"]
    assert not near.tally("F9").exempt
    assert far.take_new() == []
    assert (far.tally("F9").looked_at, sum(far.tally("F9").exempt.values())) == (6, 1)


@pytest.mark.parametrize("seed", range(5))
def test_a_window_of_values_accuses_nobody_and_says_what_it_has_forgotten(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    values, first = ValuesAtOffsets(20), {}
    forgotten: set[int] = set()
    differing = 0
    for end in range(2_000):
        offset, value = max(0, end - chance.randrange(60)), chance.choice("aaaab")
        if values.is_beyond(TOPIC_ID, 0, offset):
            forgotten.add(offset)
        differs = values.add(TOPIC_ID, 0, offset, value)
        knows_another = first.setdefault(offset, value) != value
        differing += differs
        if offset not in forgotten:
            assert differs == knows_another
    assert differing and forgotten
