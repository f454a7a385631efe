"""Examples of the rules in `programs/`."""

from __future__ import annotations

from typing import Any

from minicluster.verify.programs.failures import programs_do_not_fail
from minicluster.verify.programs.groups import (
    a_group_is_handed_what_it_passes,
    programs_commit_what_they_were_handed,
)
from minicluster.verify.programs.holders import no_record_is_handed_to_two_members_at_once
from minicluster.verify.programs.lag import the_lag_of_a_group_falls
from minicluster.verify.programs.transactions import programs_end_their_transactions
from tests.verify.examples.example import breaks, exempts, keeps
from tests.verify.handwritten.clients import behind_a_loss, history, offset, own, poll, sent
from tests.verify.handwritten.run import TOPIC_ID, RunBuilder, as_json

ONE, TWO = -2, -3  # the nodes of two programs


def _programs(run: RunBuilder | None = None, **life: Any) -> RunBuilder:
    """Programs one and two, in a run of 100 s that nothing disturbs; six acknowledged records."""
    run = run or history()
    lives = [{"started_ms": 0, "ended_ms": None, "ended": None, "error": None, **life}]
    run.header |= {
        "apps": [
            {"name": "one", "node": ONE, "incarnations": lives},
            {"name": "two", "node": TWO, "incarnations": [{"started_ms": 0}]},
        ],
        "healed_ms": 0,
        "ended_at_ms": 100_000,
    }
    for number in range(6):
        sent(run, number, f"v{number}")
    return run


def _asks(run: RunBuilder, api: str, node: int = ONE, **values: Any) -> dict[str, Any]:
    """A request of a program; the fields of its rows of ``client_record``."""
    run.rpc(api, node, dst=1, sent_ms=0, **values)
    return {"rpc": run.rows["rpc"][-1]["id"], "connection": -node}


def _reads(run: RunBuilder, *offsets: int, node: int = ONE, at: int | None = None) -> RunBuilder:
    return poll(run, "app", *offsets, at=at, **_asks(run, "Fetch", node))


def _is_given(run: RunBuilder, value: int) -> RunBuilder:
    asked = _asks(run, "OffsetFetch")
    return offset(run, "committed", value, received_seq=run.seq + 1, **asked)


def _commits(
    run: RunBuilder, value: int, node: int = ONE, member: str = "m1", generation: int = 1
) -> RunBuilder:
    partitions = [{"partitionIndex": 0, "committedOffset": value}]
    request = {
        "groupId": "g",
        "generationIdOrMemberEpoch": generation,
        "memberId": member,
        "topics": [{"name": "orders", "partitions": partitions}],
    }
    response = {"topics": [{"partitions": [{"errorCode": 0}]}]}
    texts = {"request": as_json(request), "response": as_json(response)}
    asked = _asks(run, "OffsetCommit", node, **texts)
    return offset(run, "commit", value, member_id=member, generation=generation, **asked)


@breaks(a_group_is_handed_what_it_passes)
def p1_bad() -> RunBuilder:
    """A program reads 0 and 1, its group has no offset, it begins again at 4 and commits 6."""
    run = _is_given(_reads(_programs(), 0, 1), -1)
    return _commits(_reads(run, 4, 5), 6)


@breaks(a_group_is_handed_what_it_passes)
def p1_left_out() -> RunBuilder:
    """A response has the records at 0 and 2, and the program commits 3."""
    return _commits(_reads(_programs(), 0, 2), 3)


@breaks(a_group_is_handed_what_it_passes)
def p1_given_too_much() -> RunBuilder:
    """A group has committed 2, and its coordinator gives a program 4."""
    run = _is_given(_commits(_reads(_programs(), 0, 1), 2), 4)
    return _commits(_reads(run, 4, 5), 6)


@keeps(a_group_is_handed_what_it_passes, programs_commit_what_they_were_handed)
def p1_near() -> RunBuilder:
    """A program goes from 2 to 4 by itself, and another one has read 5."""
    run = _commits(_reads(_programs(), 0, 1), 2)
    _commits(_reads(run, 4), 5)
    return _commits(_reads(run, 5, node=TWO), 6, node=TWO)


@breaks(programs_commit_what_they_were_handed)
def p2_bad() -> RunBuilder:
    """A program reads 0 and 1, and commits 4."""
    return _commits(_reads(_programs(), 0, 1), 4)


@breaks(programs_commit_what_they_were_handed)
def p2_behind_the_end() -> RunBuilder:
    """A program reads all records, and commits 7 where the log ends at 6."""
    return _commits(_reads(_programs(), 0, 1, 2, 3, 4, 5), 7)


@keeps(programs_commit_what_they_were_handed)
def p2_near() -> RunBuilder:
    """A program commits what it read, and later the end of the partition that it has asked for."""
    run = _commits(_reads(_programs(), 0, 1), 2)
    topics = [{"name": "orders", "partitions": [{"partitionIndex": 0, "offset": 6}]}]
    _asks(run, "ListOffsets", response=as_json({"topics": topics}))
    return _commits(run, 6)


@exempts(programs_commit_what_they_were_handed)
def p2_near_lost() -> RunBuilder:
    """A program commits 6 in a partition that has lost records, and was handed those before 4."""
    return _commits(_reads(_programs(behind_a_loss()), 0, 1, 2, 3), 6)


@exempts(programs_commit_what_they_were_handed)
def p2_near_misled() -> RunBuilder:
    """A fault tells a program that its commit of 4 has succeeded; it was handed 0 and 1."""
    run = _commits(_reads(_programs(), 0, 1), 4)
    run.rows["client_record"][-1]["misled"] = True
    return run


@breaks(the_lag_of_a_group_falls)
def p3_bad() -> RunBuilder:
    """A program reads all six records, and has committed 2 since the first of them."""
    return _reads(_commits(_reads(_programs(), 0, 1), 2), 2, 3, 4, 5)


@breaks(the_lag_of_a_group_falls)
def p3_asks_for_nothing() -> RunBuilder:
    """A program commits 2 and asks for nothing any more."""
    return _commits(_reads(_programs(), 0, 1), 2)


@keeps(the_lag_of_a_group_falls)
def p3_near() -> RunBuilder:
    """A program has committed all but two records, which were acknowledged a second ago."""
    run = _commits(_reads(_programs(), 0, 1, 2, 3), 4)
    acknowledged = [row for row in run.rows["client_record"] if row["f"] == "send"]
    for row in acknowledged[4:]:
        row |= {"vt": 99_000, "seq": 99_000, "resp_seq": 99_000}
    return run


@exempts(the_lag_of_a_group_falls)
def p3_near_disturbed() -> RunBuilder:
    """A disturbance lasts until the end of the run."""
    run = p3_asks_for_nothing()
    run.header["healed_ms"] = None
    return run


@exempts(the_lag_of_a_group_falls)
def p3_near_short() -> RunBuilder:
    """The run ends 20 s after the last disturbance."""
    run = p3_asks_for_nothing()
    run.header["healed_ms"] = 80_000
    return run


@exempts(the_lag_of_a_group_falls)
def p3_near_ended() -> RunBuilder:
    """The one program of the group has ended."""
    run = _programs(ended="ended", ended_ms=90_000)
    return _commits(_reads(run, 0, 1), 2)


def _transaction(run: RunBuilder, *, ends: bool) -> RunBuilder:
    """Program one begins a transaction of producer 7."""
    producer = {"producerId": 7, "producerEpoch": 0}
    name = {"transactionalId": "billing"}
    _asks(run, "InitProducerId", request=as_json({**name, "transactionTimeoutMs": 20_000}))
    _asks(run, "AddOffsetsToTxn", request=as_json({**name, **producer, "groupId": "g"}))
    if ends:
        _asks(run, "EndTxn", request=as_json({**name, **producer, "committed": True}))
    return run


def _batch(run: RunBuilder, at: int, marker: str | None = None) -> RunBuilder:
    """A batch of producer 7 in the log."""
    place = {"broker": 1, "topic": "orders", "topic_id": TOPIC_ID, "part": 0}
    row = {"base_offset": at, "last_offset": at, "producer_id": 7, "producer_epoch": 0}
    return run.row("log_batch", {**place, **row, "transactional": True, "marker": marker})


def _committed(run: RunBuilder) -> RunBuilder:
    """Program one commits a transaction, and the log has its marker."""
    return _batch(_batch(_transaction(run, ends=True), 4), 5, "commit")


@breaks(programs_end_their_transactions)
def p4_bad() -> RunBuilder:
    """A program runs, and a transaction of it with a timeout of 20 s is open for 100 s."""
    return _transaction(_programs(), ends=False)


@breaks(programs_end_their_transactions)
def p4_ended() -> RunBuilder:
    """A program ends by itself, and leaves a transaction open."""
    return _transaction(_programs(ended="ended", ended_ms=50), ends=False)


@breaks(programs_end_their_transactions)
def p4_unmarked() -> RunBuilder:
    """A program commits a transaction, and 100 s later the log has no marker of it."""
    return _batch(_transaction(_programs(), ends=True), 4)


@keeps(programs_end_their_transactions)
def p4_near() -> RunBuilder:
    """A transaction is committed, with its marker in the log; the next one began 10 s ago."""
    run = _transaction(_committed(_programs()), ends=False)
    run.rows["rpc"][-1]["sent_ms"] = 90_000
    return run


@keeps(programs_end_their_transactions)
def p4_near_killed() -> RunBuilder:
    """A program has committed a transaction, and is killed with the next one open."""
    return _transaction(_committed(_programs(ended="killed", ended_ms=50)), ends=False)


@keeps(programs_end_their_transactions)
def p4_near_paused() -> RunBuilder:
    """A program has committed a transaction, and is paused with the next one open."""
    return _transaction(_committed(_programs(paused=True)), ends=False)


@breaks(programs_do_not_fail)
def p5_bad() -> RunBuilder:
    """A program ends with a KafkaError, and nobody has read it."""
    return _programs(ended="failed", ended_ms=50, error="KafkaError: no coordinator")


@keeps(programs_do_not_fail)
def p5_near() -> RunBuilder:
    """A program is killed, and another one fails with an error that the test has read."""
    run = _programs(ended="killed", ended_ms=50)
    failed = {"started_ms": 0, "ended_ms": 60, "ended": "failed", "error": "ValueError: it"}
    run.header["apps"][1]["incarnations"] = [{**failed, "error_read": True}]
    return run


@keeps(programs_do_not_fail)
def p5_near_started_again() -> RunBuilder:
    """A program fails and is started again, and ends by itself."""
    run = _programs(ended="failed", ended_ms=50, error="KafkaError: no coordinator")
    again = {"started_ms": 60, "ended_ms": 70, "ended": "ended", "error": None}
    run.header["apps"][0]["incarnations"].append(again)
    return run


def _owns(run: RunBuilder, node: int, member: str, generation: int) -> RunBuilder:
    asked = _asks(run, "SyncGroup", node)
    own(run, member, generation)
    run.rows["client_record"][-1] |= asked
    return run


def _beats(run: RunBuilder, node: int, member: str, generation: int) -> RunBuilder:
    """A heartbeat that the coordinator takes."""
    request = {"groupId": "g", "generationId": generation, "memberId": member}
    _asks(run, "Heartbeat", node, request=as_json(request))
    return run


@breaks(no_record_is_handed_to_two_members_at_once)
def p6_bad() -> RunBuilder:
    """Member m2 is given the partition of m1, whose heartbeats are still taken as before; both read
    0 and 1."""
    run = _owns(_owns(_programs(), ONE, "m1", 1), TWO, "m2", 2)
    _reads(_reads(run, 0, 1), 0, 1, node=TWO)
    return _beats(run, ONE, "m1", 1)


@breaks(no_record_is_handed_to_two_members_at_once)
def p6_without_members() -> RunBuilder:
    """Two programs that are not members read 0 and 1, and commit 2 for the same group."""
    run = _programs()
    for node in (ONE, TWO):
        _commits(run, 0, node, member="", generation=-1)
    _reads(_reads(run, 0, 1), 0, 1, node=TWO)
    for node in (ONE, TWO):
        _commits(run, 2, node, member="", generation=-1)
    return run


@keeps(no_record_is_handed_to_two_members_at_once)
def p6_near() -> RunBuilder:
    """Member m1 is expelled, and what it had read and not committed is handed to m2."""
    run = _reads(_owns(_programs(), ONE, "m1", 1), 0, 1)
    _owns(_beats(run, ONE, "m1", 1), TWO, "m2", 2)
    return _beats(_reads(_reads(run, 2, 3), 0, 1, node=TWO), TWO, "m2", 2)
