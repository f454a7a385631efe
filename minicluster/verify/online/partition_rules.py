"""Online rules about the changes of one partition, judged record by record."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from minicluster.metadata.image.directory_id import is_online
from minicluster.protocol import records as r
from minicluster.verify.online.history import PartitionHistory, State, Step, TopicHistory
from minicluster.verify.online.log_state import LogState
from minicluster.verify.online.share import ELSEWHERE
from minicluster.verify.online.step_checks import Prepared, checks_of
from minicluster.verify.rules.log.partitions import FIELDS


def on_partition_change(state: LogState, record: r.PartitionChangeRecord) -> None:
    """Judge and apply a change of a partition."""
    if record is ELSEWHERE:
        return
    topic = state.topics.setdefault(record.topic_id, TopicHistory())
    if record.replicas is not None and record.partition_id in topic.parts:
        topic.parts[record.partition_id] = len(record.replicas)
    if not state.owns(record.topic_id, record.partition_id):
        return
    recovery = record.leader_recovery_state
    sets: State = {
        "isr": record.isr,
        "leader": None if record.leader == -2 else record.leader,
        "replicas": record.replicas,
        "adding": record.adding_replicas,
        "removing": record.removing_replicas,
        "elr": record.eligible_leader_replicas,
        "last_elr": record.last_known_elr,
        "rec": None if recovery == -1 else recovery,
        "directories": record.directories,
    }
    add_step(state, "Change", record.topic_id, record.partition_id, sets)


def on_clear_elr(state: LogState, record: r.ClearElrRecord) -> None:
    """Judge and apply the loss of eligible leader replicas, of one topic or of all."""
    if not record.topic_name:
        cleared = [topic_id for topic_id, topic in state.topics.items() if topic.parts]
    elif record.topic_name in state.live:
        cleared = [state.live[record.topic_name]]
    else:
        cleared = []
    for topic_id in cleared:
        for part in state.topics[topic_id].parts:
            if not state.owns(topic_id, part):
                continue
            before = state.partitions[topic_id, part].state
            if before["elr"] or before["last_elr"]:
                add_step(state, "ClearElr", topic_id, part, {"elr": (), "last_elr": ()})


def add_step(
    state: LogState, kind: str, topic_id: UUID, part: int, sets: State, **epochs: int | None
) -> None:
    """Apply the fields that a record sets in a partition, and judge the step."""
    topic = state.topics[topic_id]
    history = state.partitions.setdefault((topic_id, part), PartitionHistory())
    if len(sets) < len(FIELDS):
        sets = {name: sets.get(name) for name in FIELDS}
    before = history.state
    after = {n: before[n] if value is None else value for n, value in sets.items()}
    here = state.findings.offset
    if sets["isr"] is not None:
        completes = sets["adding"] == () or sets["removing"] == ()
        history.may_keep = not state.elr or not state.judged or completes
        since, already = history.since, before["isr"] or ()
        history.since = {m: since.get(m, here) if m in already else here for m in after["isr"]}
    elif sets["leader"] == -1 and not state.elr:
        history.may_keep = True  # ELR was turned off after the ISR had come down to one
    step = Step(
        kind=kind,
        judged=state.judged,
        offset=here,
        topic=topic.name,
        part=part,
        mv=state.level,
        elr_on=state.elr,
        min_isr=state.min_isr.of(topic) if state.elr else None,
        sets=sets,
        before=before,
        after=after,
        alive_before=history.alive,
        may_keep=history.may_keep is not False,
        since=history.since,
        **epochs,
    )
    history.state, history.step = after, step
    unclean = step.unclean
    history.was_unclean = history.was_unclean or unclean
    if kind in ("Partition", "RemoveTopic"):
        history.alive = kind == "Partition"
    if step.leader_epoch is not None:
        history.leader_epoch = step.leader_epoch
    elif kind == "Change" and sets["leader"] is not None:
        history.leader_epoch += 1
    history.fenced_inside.clear()
    state.operation.steps[topic_id, part] = step
    if unclean:
        candidates = dict.fromkeys((*step.before["isr"], *(step.before["elr"] or ())))
        active = tuple(m for m in candidates if state.is_active(m))
        state.operation.unclean.append((step, active))
    _judge(state, step, unclean)


def _prepared(state: LogState, step: Step, unclean: bool) -> list[Prepared]:
    """The checks that may judge a step, with what is the same for all such steps."""
    situation = (step.state, step.change, step.elr_on, unclean)
    found = state.prepared.get((situation, step.mv))
    if found is None:
        found = [
            (check, check.when, *state.findings.counter(check.rule, check.index, step.mv))
            for check in checks_of(*situation)
        ]
        state.prepared[situation, step.mv] = found
    return found


def _judge(state: LogState, step: Step, unclean: bool) -> None:
    findings = state.findings
    for check, when, counts, promised in _prepared(state, step, unclean):
        if when is not None and not when(step):
            continue
        if counts is not None:
            counts[check.rule] += 1
        if promised and check.bad(step):
            columns = check.columns(step)
            findings.find(check.rule, check.index, topic=step.topic, part=step.part, **columns)
    _judge_elected(state, step)
    if not (step.judged and step.state and step.kind != "ClearElr"):
        return
    where: dict[str, Any] = {"topic": step.topic, "part": step.part}
    for member in step.added:
        if findings.look("A3", 0, step.mv) and not state.is_active(member) and not step.keep:
            isrs = {"old": step.before["isr"], "new": step.after["isr"]}
            findings.find("A3", 0, broker=member, **isrs, **where)
    if step.kind == "Partition" and step.alive_before is None:
        for replica in step.after["replicas"]:
            looks = findings.look("E17", 1, step.mv)
            if looks and state.is_active(replica) != (replica in step.after["isr"]):
                findings.find("E17", 1, broker=replica, new=step.after["isr"], **where)


def _judge_elected(state: LogState, step: Step) -> None:
    """A newly elected leader is active, in a log directory that is online."""
    leader, findings = step.sets["leader"], state.findings
    if not step.change or leader is None or leader < 0 or leader == step.before["leader"]:
        return
    where: dict[str, Any] = {"topic": step.topic, "part": step.part, "broker": leader}
    isr = step.after["isr"]
    if findings.promised("A4", step.mv) and not state.is_active(leader):
        findings.find("A4", 2, new=isr, **where)
    findings.look("D2", 0, step.mv)
    directory = step.directory_of(leader)
    known = state.brokers.get(leader)
    if directory is not None and not is_online(directory, known.log_dirs if known else ()):
        findings.find("D2", 0, new=isr, **where)
