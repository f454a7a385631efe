"""Rules about brokers that must be active: registered, unfenced, not shutting down.

A record of a partition implies states of brokers: an ISR member is active once the operation is
over, a new member was active right before. These events and the states of the brokers are one
stream per broker, in order, so that each event meets the last state before it: an as-of join that
costs one sort.

An event has a position in the log and a rank: rank 0 is the state before the record, rank 1 the
state at the end of the operation. A membership or leadership that lasts to a later operation is
also judged when the broker is next inactive at the end of an operation.
"""

from __future__ import annotations

from minicluster.verify.rules.log.partitions import CREATION
from minicluster.verify.rules.model import FROM_3_3, Check, Evidence, Rule, View
from minicluster.verify.rules.trace.controller_requests import PREFERRED_ELECTION

KEEP = "size(isr) = 1 and leader = -1 and coalesce(may_keep, true)"

_EVENT = """named_struct('what', '{what}', 'about', {about}, 'at', {at}, 'rank', {rank},
  'member', {member}, 'keep', {keep}, 'directory', {directory})"""


def _event(
    what: str,
    about: str,
    at: str,
    rank: int,
    *,
    member: str = "true",
    keep: str = "false",
    directory: str = "cast(null as string)",
) -> str:
    return _EVENT.format(
        what=what, about=about, at=at, rank=rank, member=member, keep=keep, directory=directory
    )


_DIRECTORY = (
    "case when size(directories) = size(replicas) "
    "then get(directories, cast(array_position(replicas, {}) as int) - 1) end"
)

_EVENTS = f"""
select run, offset, op, next_op, next_pos, topic, part, mv, failures_in_log, leaves_from, isr,
  p_isr, leader,
  inline(concat(
    case when state and final then concat(
        transform(isr, m -> {_event("A1", "m", "op", 1, keep=KEEP)}),
        transform(isr, m -> {_event("A8", "m", "op", 1, keep=KEEP)}))
      else array() end,
    case when state then transform(isr, m -> {_event("A4", "m", "pos", 1, keep=KEEP)})
      else array() end,
    case when change and d_leader >= 0 and d_leader <> p_leader then array(
        {_event("A4L", "d_leader", "pos", 0)},
        {_event("D2", "d_leader", "pos", 0, directory=_DIRECTORY.format("d_leader"))})
      else array() end,
    case when state and final and leader >= 0 then array({_event("A2", "leader", "op", 1)})
      else array() end,
    case when judged and state and kind <> 'ClearElr'
      then transform(added, m -> {_event("A3", "m", "pos", 0, keep=KEEP)})
      else array() end,
    case when judged and kind = 'Partition' and p_alive is null
      then transform(replicas, m ->
        {_event("E17", "m", "pos", 0, member="array_contains(isr, m)")})
      else array() end,
    case when unclean
      then transform(
        array_intersect(array_union(p_isr, coalesce(p_elr, array())), replicas), m ->
        {_event("C5", "m", "pos", 0, directory=_DIRECTORY.format("m"))})
      else array() end))
from partition_states
"""

_STATES = """
select * from (
  select *,
    last(state, true) over (partition by run, about order by at, rank
      rows between unbounded preceding and current row) as seen
  from (
    select run, offset, op, next_op, next_pos, topic, part, mv, failures_in_log, leaves_from, isr,
      p_isr, leader,
      what, about, at, rank, member, keep, directory,
      cast(null as struct<active: boolean, may_stay: boolean, log_dirs: array<string>,
        epoch: bigint,
        next_inactive: struct<offset: bigint, op: bigint>,
        next_fencing: struct<offset: bigint, pos: bigint>,
        next_new: struct<offset: bigint, op: bigint>,
        last_new: struct<offset: bigint, op: bigint>,
        next_end: struct<op: bigint, active: boolean, log_dirs: array<string>>>) as state
    from activity_events
    union all
    select run, offset, op, next_op, null, null, null, mv, null, null, null, null, null,
      'B', broker, pos, 0, null, null, null,
      named_struct('active', active, 'may_stay', may_stay, 'log_dirs', log_dirs, 'epoch', epoch,
        'next_inactive', next_inactive, 'next_fencing', next_fencing,
        'next_new', next_new, 'last_new', last_new, 'next_end', next_end)
    from broker_states
  )
) where what <> 'B'
"""

# KIP-589 keeps failed replicas out of the log, so the log does not show which could have led.
_LEAVES = "mv >= leaves_from"
_CANDIDATES_KNOWN = f"(failures_in_log and mv >= {FROM_3_3})"

ACTIVE = "coalesce(seen.active, false)"
# Kafka 3.x leaves a new incarnation in its ISRs, fenced as it is.
_LASTS = "coalesce(seen.active or seen.may_stay, false)"

_TURNS = "coalesce(seen.next_inactive.op < next_op, false)"

# MIGRATING, UNASSIGNED and LOST have ids of their own (KIP-858).
_IN_ORDER = (
    "(directory is null or directory in ('AAAAAAAAAAAAAAAAAAAAAA', 'AAAAAAAAAAAAAAAAAAAAAQ') "
    "or (directory <> 'AAAAAAAAAAAAAAAAAAAAAg' and (coalesce(size({dirs}), 0) = 0 "
    "or array_contains({dirs}, directory))))"
)

_ONLINE = _IN_ORDER.format(dirs="seen.log_dirs")

# The broker and its directories after the records that follow in the same operation.
_STAYS_ONLINE = (
    "case when coalesce(seen.next_end.op <= op, false) then seen.next_end.active and "
    + _IN_ORDER.format(dirs="seen.next_end.log_dirs")
    + f" else {_ONLINE} end"
)

# The part of E17 that needs the states of brokers.
ISR_OF_NEW = Check(
    view="activity_states",
    when="what = 'E17'",
    counts=False,
    bad=f"{ACTIVE} <> member",
    message="the ISR {new} of a new partition is not the active part of its replicas: broker "
    "{broker} is wrong",
    broker="about",
    new="isr",
)


VIEWS = (
    View(name="activity_events", sql=_EVENTS),
    View(name="activity_states", sql=_STATES),
)

RULES = (
    Rule(
        id="A1",
        title="Every ISR member is active",
        statement="At the end of every operation each ISR member is registered, unfenced and "
        "not in controlled shutdown, except for the last member, which stays while there is no "
        "leader.",
        source="KIP-841; ReplicationControlManager.handleBrokerFenced",
        evidence=Evidence.LOG,
        promised_from=FROM_3_3,
        online=True,
        checks=(
            Check(
                view="activity_states",
                when="what = 'A1'",
                bad=f"not keep and (not {_LASTS} or {_TURNS})",
                offset=f"case when {_LASTS} then seen.next_inactive.offset else offset end",
                message="broker {broker} is in the ISR {new} although it is not active",
                broker="about",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="A2",
        title="The leader is active",
        statement="At the end of every operation each leader is registered, unfenced and not "
        "in controlled shutdown, or there is no leader.",
        source="KIP-841, KIP-631; PartitionChangeBuilder.electLeader",
        evidence=Evidence.LOG,
        promised_from=FROM_3_3,
        online=True,
        checks=(
            Check(
                view="activity_states",
                when="what = 'A2'",
                bad=f"not {_LASTS} or {_TURNS}",
                offset=f"case when {_LASTS} then seen.next_inactive.offset else offset end",
                message="broker {broker} leads (ISR {new}) although it is not active",
                broker="about",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="A3",
        title="Only active replicas enter an ISR",
        statement="A replica that a record adds to an ISR was active right before the record.",
        source="KIP-841, KIP-903; ReplicationControlManager.ineligibleReplicasForIsr",
        evidence=Evidence.LOG,
        promised_from=FROM_3_3,
        online=True,
        checks=(
            Check(
                view="activity_states",
                when="what = 'A3'",
                bad=f"not {ACTIVE} and not keep",
                message="the ISR went from {old} to {new} while broker {broker} was not active",
                broker="about",
                old="p_isr",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="A4",
        title="A broker leaves ISRs before it is fenced and is unfenced before it is elected",
        statement="Every prefix of the log is safe: within an operation a broker leaves the "
        "ISRs before the record that fences it, and a broker is elected only after the record "
        "that unfences it.",
        source="KIP-841, KIP-631; ReplicationControlManager.handleBrokerFenced, "
        "handleBrokerUnfenced",
        evidence=Evidence.LOG,
        promised_from=FROM_3_3,
        online=True,
        checks=(
            Check(view="broker_states", when="flips", bad="false", message=""),
            Check(
                view="activity_states",
                when="what = 'A4'",
                counts=False,
                bad="not keep and coalesce(seen.next_fencing.pos < next_pos, false)",
                offset="seen.next_fencing.offset",
                message="broker {broker} was fenced while it was in the ISR {new}",
                broker="about",
                new="isr",
            ),
            Check(
                view="activity_states",
                when="what = 'A4L'",
                counts=False,
                bad=f"not {ACTIVE}",
                message="broker {broker} was elected (ISR {new}) before it was active",
                broker="about",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="A8",
        title="A new incarnation is in no ISR",
        statement="After a broker has registered as a new incarnation it is in no ISR and "
        "leads no partition, except for the last member, which stays while there is no leader. "
        "Kafka 3.x promises this only from 4.0-IV1 on, so a log whose release is not recorded is "
        "judged from there.",
        source="KAFKA-18106, KIP-966; ReplicationControlManager.handleBrokerRegistered",
        evidence=Evidence.LOG,
        promised_from=FROM_3_3,
        online=True,
        checks=(
            Check(view="broker_states", when="is_new", bad="false", message="", promised=_LEAVES),
            Check(
                view="activity_states",
                when="what = 'A8'",
                counts=False,
                promised=_LEAVES,
                bad="not keep and (coalesce(seen.last_new.op = op, false) "
                "or coalesce(seen.next_new.op < next_op, false))",
                offset="case when coalesce(seen.last_new.op = op, false) "
                "then seen.last_new.offset else seen.next_new.offset end",
                message="broker {broker} registered as a new incarnation and is in the ISR {new}",
                broker="about",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="C5",
        title="An unclean election happens only without a clean candidate",
        statement="A leader from outside ISR and ELR is elected only if no member of the two "
        "is active with its log directory online, before and after the operation. With KIP-589 "
        "the log does not hold which replicas have failed, and nothing is promised.",
        source="KIP-704, KIP-106; PartitionChangeBuilder.electLeader",
        evidence=Evidence.LOG,
        promised_from=FROM_3_3,
        online=True,
        tables=("rpc",),
        checks=(
            Check(
                view="partition_states",
                when="unclean",
                bad="false",
                message="",
                promised=_CANDIDATES_KNOWN,
            ),
            Check(
                view="activity_states",
                when="what = 'C5'",
                counts=False,
                bad=f"{ACTIVE} and {_STAYS_ONLINE}",
                message="an unclean election although broker {broker} of the ISR {old} was active",
                broker="about",
                old="p_isr",
                promised=_CANDIDATES_KNOWN,
            ),
            PREFERRED_ELECTION,
        ),
    ),
    Rule(
        id="D2",
        title="An elected leader's log directory is online",
        statement="The log directory in which an elected leader holds the partition is online.",
        source="KIP-858; ReplicationControlManager.LeaderAcceptor",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                view="activity_states",
                when="what = 'D2'",
                bad=f"not {_ONLINE}",
                message="broker {broker} was elected (ISR {new}) although its directory is offline",
                broker="about",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="E17",
        title="A partition begins with its active replicas",
        statement="A new partition has leader epoch 0 and partition epoch 0, its ISR is the "
        "active part of its replicas, and the first ISR member leads.",
        source="KAFKA-13083; ReplicationControlManager.createTopic",
        evidence=Evidence.LOG,
        promised_from=FROM_3_3,
        online=True,
        checks=(
            CREATION,
            ISR_OF_NEW,
        ),
    ),
)
