"""Online rules about the changes of one partition, judged record by record."""

from __future__ import annotations

from typing import Any

from minicluster.metadata.image.directory_id import is_online
from minicluster.protocol import records as r
from minicluster.verify.online.history import PartitionHistory, Step
from minicluster.verify.online.log_state import LogState
from minicluster.verify.online.steps.transitions import CLEARED, Change, Judgement


def on_partition_change(state: LogState, record: r.PartitionChangeRecord) -> None:
    """Judge and apply a change of a partition."""
    topic_id, part = record.topic_id, record.partition_id
    if state.owns(topic_id, part):
        change = state.changes.of_change(record)
        on_change(state, state.partition(topic_id, part), change)
        return
    parts = state.topic(topic_id).parts
    if record.replicas is not None and part in parts:
        parts[part] = len(record.replicas)


def on_change(state: LogState, history: PartitionHistory, change: Change) -> None:
    """Judge and apply a change of a partition that is judged here."""
    replicas = change.sets["replicas"]
    if replicas is not None and history.part in history.topic.parts:
        history.topic.parts[history.part] = len(replicas)
    add_step(state, history, change)


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
            history = state.partitions[topic_id, part]
            before = history.situation.fields
            if before["elr"] or before["last_elr"]:
                add_step(state, history, CLEARED)


def add_step(state: LogState, history: PartitionHistory, change: Change) -> None:
    """Apply the fields that a record sets in a partition, and judge the step."""
    topic, here = history.topic, state.findings.offset
    judgement = state.transitions.of(
        history.situation,
        change,
        min_isr=state.min_isr.of(topic) if state.elr else None,
        judged=state.judged,
        mv=state.level,
        elr_on=state.elr,
        partitions=len(state.partitions),
    )
    history.situation = judgement.following
    if judgement.added:
        since, added = history.since, judgement.added
        members = judgement.following.fields["isr"]
        history.since = {m: here if m in added else since.get(m, here) for m in members}
    step = history.step = Step(
        judgement=judgement,
        transition=judgement.transition,
        offset=here,
        topic=topic.name,
        part=history.part,
        since=history.since,
    )
    if change.leader_epoch is not None:
        history.leader_epoch = change.leader_epoch
    elif change.kind == "Change" and change.sets["leader"] is not None:
        history.leader_epoch += 1
    state.operation.steps[history] = step
    if judgement.is_unclean:
        history.was_unclean = True
        before = judgement.transition.before
        candidates = dict.fromkeys((*before["isr"], *(before["elr"] or ())))
        active = tuple(m for m in candidates if state.is_active(m))
        state.operation.unclean.append((step, active))
    _judge(state, step, judgement)


def _judge(state: LogState, step: Step, judgement: Judgement) -> None:
    findings = state.findings
    for counts, rule, cases in judgement.counted:
        counts[rule] += cases
    for rule, index, columns in judgement.found:
        findings.find(rule, index, topic=step.topic, part=step.part, **columns)
    if judgement.elected is not None:
        _judge_elected(state, step, judgement.elected)
    if not judgement.entering and not judgement.placed_on:
        return
    before, after = step.transition.before, step.transition.after
    where: dict[str, Any] = {"topic": step.topic, "part": step.part}
    for member in judgement.entering:
        if not state.is_active(member):
            isrs = {"old": before["isr"], "new": after["isr"]}
            findings.find("A3", 0, broker=member, **isrs, **where)
    for replica in judgement.placed_on:
        if state.is_active(replica) != (replica in after["isr"]):
            findings.find("E17", 1, broker=replica, new=after["isr"], **where)


def _judge_elected(state: LogState, step: Step, leader: int) -> None:
    """A newly elected leader is active, in a log directory that is online."""
    findings, transition = state.findings, step.transition
    where: dict[str, Any] = {"topic": step.topic, "part": step.part, "broker": leader}
    isr = transition.after["isr"]
    if findings.promised("A4", transition.mv) and not state.is_active(leader):
        findings.find("A4", 2, new=isr, **where)
    directory = transition.directory_of(leader)
    known = state.brokers.get(leader)
    if directory is not None and not is_online(directory, known.log_dirs if known else ()):
        findings.find("D2", 0, new=isr, **where)
