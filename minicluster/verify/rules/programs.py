"""Users' programs inside the simulation: promises that need no assertion of a test.

Each finding accuses a program or the cluster. Where the cluster breaks a rule of its own in the
same run, the verdict says so beside each of them: an innocent program looks guilty then.
"""

from __future__ import annotations

from minicluster.verify.histories.programs import (
    EndOfProgram,
    GroupLag,
    HeldAtOnce,
    OpenTransaction,
    PassedByGroup,
    ProgramCommit,
)
from minicluster.verify.model import Evidence
from minicluster.verify.rules.rule import CASE, Findings, broken, exempt, rule

_OF_GROUPS = ("client_record", "group_event", "log_batch", "partition_event", "raft_event",
              "replica_log", "rpc")  # fmt: skip


@rule("P1", "A group of programs is handed what it passes",
      source="at-least-once delivery: KafkaConsumer, offsets and consumer position",
      at_end=True, evidence=Evidence.PROGRAMS, tables=(*_OF_GROUPS, "history"),
      breaks="A program reads 0 and 1, its group has no offset, it begins again at 4 and commits "
      "6.",
      keeps="A program goes from 2 to 4 by itself, and another one has read 5.")  # fmt: skip
def a_group_is_handed_what_it_passes(record: PassedByGroup) -> Findings:
    """Each acknowledged record from the first offset at which a program of a group has fetched, and
    before the offset that the group committed last, was in a response to a program of the group,
    unless a program passed it by a seek of its own."""
    if record.excuse is not None:
        yield exempt(record.excuse)
        return
    if record.sought:
        yield exempt("a program of the group has set its own position")
        return
    yield CASE
    if record.handed:
        return
    lost = f"the record at offset {record.offset} was acknowledged and is lost to group"
    if record.left_out:
        why = "accused is the cluster: a response to a program of the group left it out"
    elif record.given is not None and record.given > record.offset:
        why = (
            f"accused is the cluster: the coordinator gave a program the offset {record.given}, "
            "which nobody had committed"
        )
    elif record.is_reset:
        why = (
            "accused is the program: its group had no offset, and it began behind the record "
            "(auto.offset.reset)"
        )
    else:
        why = f"accused is {record.by}, which committed beyond it"
    yield broken(f"{lost} {record.group}, which was never handed it; {why}")


@rule("P2", "Programs commit what they were handed",
      source="KafkaConsumer.commitSync: the offset of the next record that it will read",
      at_end=True, evidence=Evidence.PROGRAMS, tables=_OF_GROUPS,
      breaks="A program reads 0 and 1, and commits 4.",
      keeps="A program goes from 2 to 4 by itself, and another one has read 5.")  # fmt: skip
def programs_commit_what_they_were_handed(commit: ProgramCommit) -> Findings:
    """A program commits no offset behind a record that no program of its group was handed before,
    nor one behind the end of the log; an end of the partition that it asked for may be
    committed."""
    if commit.misled:
        yield exempt("the program was told what no node said")
        return
    if commit.excuse is not None:
        yield exempt(commit.excuse)
        return
    if commit.known is None:
        yield exempt("no program of the group has fetched the partition: it sets an offset")
        return
    yield CASE
    is_beyond = commit.log_end is not None and commit.offset > max(commit.log_end, commit.known)
    if commit.records or is_beyond:
        passed = f"{commit.records} records" if commit.records else "the end of the log"
        yield broken(
            f"{commit.by} committed offset {commit.offset} for group {commit.group}, which had "
            f"been handed what is before {commit.known}: it passes {passed}; accused is the program"
        )


@rule("P3", "The lag of a group of programs falls",
      source="liveness after the last disturbance", at_end=True, evidence=Evidence.PROGRAMS,
      tables=(*_OF_GROUPS, "history"),
      breaks="A program reads all six records, and has committed 2 since the first of them.",
      keeps="A program has committed all but two records, which were acknowledged a "
      "second ago.")  # fmt: skip
def the_lag_of_a_group_falls(lag: GroupLag) -> Findings:
    """While a program of a group runs, and nothing disturbs the run any more, the offset of a
    partition for which the group has committed before, and behind which records were acknowledged,
    rises within 30 seconds, a session and a rebalance of its members."""
    if lag.unjudged is not None:
        yield exempt(lag.unjudged)
        return
    yield CASE
    if not lag.records or lag.still_ms < lag.bound_ms:
        return
    still = (
        f"group {lag.group} has stood at offset {lag.offset} for {lag.still_ms / 1000:g} s in the "
        f"calm, {lag.records} acknowledged records behind"
    )
    programs = ", ".join(lag.programs)
    if lag.handed:
        why = f"accused is {programs}: handed the records, and commits nothing"
    elif lag.asked:
        why = f"accused is the cluster: {programs} asked for the records, and was not given them"
    else:
        why = f"accused is {programs}: running, and asking for no record of the partition"
    yield broken(f"{still}; {why}")


@rule("P4", "Programs end their transactions",
      source="KIP-98; KafkaProducer.commitTransaction, transaction.timeout.ms",
      at_end=True, evidence=Evidence.PROGRAMS,
      tables=("client_record", "log_batch", "partition_event", "raft_event", "rpc"),
      breaks="A program runs, and a transaction of it with a timeout of 20 s is open for 100 s.",
      keeps="A transaction is committed, with its marker in the log; the next one "
      "began 10 s ago.")  # fmt: skip
def programs_end_their_transactions(transaction: OpenTransaction) -> Findings:
    """A program that ends by itself has ended its transactions, one that runs ends each within its
    timeout in the calm, and a transaction that was ended has its markers 30 seconds later."""
    if transaction.unjudged is not None:
        yield exempt(transaction.unjudged)
        return
    yield CASE
    name = f"transaction of {transaction.transactional_id}"
    if transaction.unmarked:
        yield broken(
            f"the {name} was ended by {transaction.by} and has no marker in the log of a "
            "partition; accused is the cluster"
        )
    elif transaction.ended:
        return
    elif transaction.how is not None:
        yield broken(
            f"{transaction.by} has ended and left a {name} open, which holds up readers of "
            "committed records until it expires; accused is the program"
        )
    elif transaction.open_ms > transaction.timeout_ms:
        yield broken(
            f"{transaction.by} runs and left a {name} open for {transaction.open_ms / 1000:g} s, "
            f"beyond its timeout of {transaction.timeout_ms / 1000:g} s; accused is the program"
        )


@rule("P5", "Programs do not fail",
      source="design of this project", at_end=True, evidence=Evidence.PROGRAMS, tables=("rpc",),
      breaks="A program ends with a KafkaError, and nobody has read it.",
      keeps="A program is killed, and another one fails with an error that the test "
      "has read.")  # fmt: skip
def programs_do_not_fail(end: EndOfProgram) -> Findings:
    """No program ends with an error, unless the test has read it (``app.error``) or has started the
    program again."""
    if end.life.ended is None:
        return
    if end.life.ended == "failed" and end.life.error_read:
        yield exempt("the test has read the error")
        return
    if end.life.ended == "failed" and end.restarted:
        yield exempt("the program was started again")
        return
    yield CASE
    if end.life.ended == "failed":
        at_s = (end.life.ended_ms or 0) / 1000
        said = "" if end.said is None else f" (the last error that it was told: {end.said})"
        yield broken(
            f"{end.program} died at {at_s:g} s of {end.life.error}{said}; accused is the program"
        )


@rule("P6", "No record is handed to two members at once",
      source="ConsumerCoordinator; KIP-848 for what a group promises", evidence=Evidence.PROGRAMS,
      at_end=True, tables=_OF_GROUPS,
      breaks="Member m2 is given the partition of m1, whose heartbeats are still taken as before; "
      "both read 0 and 1.",
      keeps="Member m1 is expelled, and what it had read and not committed is "
      "handed to m2.")  # fmt: skip
def no_record_is_handed_to_two_members_at_once(held: HeldAtOnce) -> Findings:
    """A coordinator that has given a partition to a member takes no other one for its owner, and
    programs that are not members commit for a group only what no other program reads meanwhile. A
    record that is handed out again after a rebalance is no case."""
    yield CASE
    if not held.records:
        return
    both = f"{held.one} and {held.other} were handed the same {held.records} records at once"
    if held.by_cluster:
        yield broken(
            f"{both}; accused is the cluster, which assigned the partition to both in group "
            f"{held.group}"
        )
    else:
        yield broken(
            f"{both}; accused are the programs, which commit for group {held.group} without being "
            "its members (assign)"
        )
