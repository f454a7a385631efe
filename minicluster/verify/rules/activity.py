"""Rules that ask whether a broker was active: registered, not fenced, not shutting down.

Every partition record asks questions about brokers (is this ISR member active once the operation
is done? was this new member active just before?). The questions and the brokers' own states stand
in one stream per broker, in order, so that each question sees the last state before it: an as-of
join that costs one sort.

A question has a place in the log and a rank: rank 0 asks about the state before the record, rank 1
about the state at the end of the operation. A membership or leadership that lasts to a later
operation asks also when the broker is next inactive at the end of an operation.
"""

from __future__ import annotations

from minicluster.verify.rules.model import FROM_3_3, Check, Evidence, Rule

KEEP = "size(isr) = 1 and leader = -1 and coalesce(may_keep, true)"

_QUESTION = """named_struct('what', '{what}', 'about', {about}, 'at', {at}, 'rank', {rank},
  'member', {member}, 'keep', {keep}, 'directory', {directory})"""


def _ask(
    what: str,
    about: str,
    at: str,
    rank: int,
    *,
    member: str = "true",
    keep: str = "false",
    directory: str = "cast(null as string)",
) -> str:
    return _QUESTION.format(
        what=what, about=about, at=at, rank=rank, member=member, keep=keep, directory=directory
    )


_DIRECTORY = (
    "case when size(directories) = size(replicas) "
    "then get(directories, cast(array_position(replicas, {}) as int) - 1) end"
)

QUESTIONS = f"""
select run, offset, op, next_op, next_pos, topic, part, mv, failures_told, isr, p_isr, leader,
  inline(concat(
    case when state and final then concat(
        transform(isr, m -> {_ask("A1", "m", "op", 1, keep=KEEP)}),
        transform(isr, m -> {_ask("A8", "m", "op", 1, keep=KEEP)}))
      else array() end,
    case when state then transform(isr, m -> {_ask("A4", "m", "pos", 1, keep=KEEP)})
      else array() end,
    case when change and d_leader >= 0 and d_leader <> p_leader then array(
        {_ask("A4L", "d_leader", "pos", 0)},
        {_ask("D2", "d_leader", "pos", 0, directory=_DIRECTORY.format("d_leader"))})
      else array() end,
    case when state and final and leader >= 0 then array({_ask("A2", "leader", "op", 1)})
      else array() end,
    case when judged and state and kind <> 'ClearElr'
      then transform(added, m -> {_ask("A3", "m", "pos", 0, keep=KEEP)})
      else array() end,
    case when judged and kind = 'Partition' and p_alive is null
      then transform(replicas, m ->
        {_ask("E17", "m", "pos", 0, member="array_contains(isr, m)")})
      else array() end,
    case when unclean
      then transform(
        array_intersect(array_union(p_isr, coalesce(p_elr, array())), replicas), m ->
        {_ask("C5", "m", "pos", 0, directory=_DIRECTORY.format("m"))})
      else array() end))
from partition_states
"""

VIEW = """
select * from (
  select *,
    last(state, true) over (partition by run, about order by at, rank
      rows between unbounded preceding and current row) as seen
  from (
    select run, offset, op, next_op, next_pos, topic, part, mv, failures_told, isr, p_isr, leader,
      what, about, at, rank, member, keep, directory,
      cast(null as struct<active: boolean, log_dirs: array<string>, epoch: bigint,
        next_inactive: struct<offset: bigint, op: bigint>,
        next_fencing: struct<offset: bigint, pos: bigint>,
        next_new: struct<offset: bigint, op: bigint>,
        last_new: struct<offset: bigint, op: bigint>,
        next_end: struct<op: bigint, active: boolean, log_dirs: array<string>>>) as state
    from questions
    union all
    select run, offset, op, next_op, null, null, null, mv, null, null, null, null,
      'B', broker, pos, 0, null, null, null,
      named_struct('active', active, 'log_dirs', log_dirs, 'epoch', epoch,
        'next_inactive', next_inactive, 'next_fencing', next_fencing,
        'next_new', next_new, 'last_new', last_new, 'next_end', next_end)
    from broker_states
  )
) where what <> 'B'
"""

# KIP-589 keeps what has failed out of the log, so who could have led is not to be seen there.
_CANDIDATES_KNOWN = f"(failures_told and mv >= {FROM_3_3})"
ACTIVE = "coalesce(seen.active, false)"
_TURNS = "coalesce(seen.next_inactive.op < next_op, false)"
# MIGRATING, UNASSIGNED and LOST have ids of their own (KIP-858).
_IN_ORDER = (
    "(directory is null or directory in ('AAAAAAAAAAAAAAAAAAAAAA', 'AAAAAAAAAAAAAAAAAAAAAQ') "
    "or (directory <> 'AAAAAAAAAAAAAAAAAAAAAg' and (coalesce(size({dirs}), 0) = 0 "
    "or array_contains({dirs}, directory))))"
)
_ONLINE = _IN_ORDER.format(dirs="seen.log_dirs")
# What a record that follows in the same operation makes of the broker and its directories.
_STAYS_ONLINE = (
    "case when coalesce(seen.next_end.op <= op, false) then seen.next_end.active and "
    + _IN_ORDER.format(dirs="seen.next_end.log_dirs")
    + f" else {_ONLINE} end"
)

RULES = (
    Rule(
        id="A1",
        title="No inactive replica is in an ISR",
        statement="At the end of every operation each ISR member is registered, unfenced and not "
        "shutting down, but for the last one kept while there is no leader.",
        source="KIP-841; ReplicationControlManager.handleBrokerFenced",
        evidence=Evidence.LOG,
        promised_from=FROM_3_3,
        online=True,
        checks=(
            Check(
                group="activity",
                when="what = 'A1'",
                bad=f"not keep and (not {ACTIVE} or {_TURNS})",
                offset=f"case when {ACTIVE} then seen.next_inactive.offset else offset end",
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
        "shutting down, or there is none.",
        source="KIP-841, KIP-631; PartitionChangeBuilder.electLeader",
        evidence=Evidence.LOG,
        promised_from=FROM_3_3,
        online=True,
        checks=(
            Check(
                group="activity",
                when="what = 'A2'",
                bad=f"not {ACTIVE} or {_TURNS}",
                offset=f"case when {ACTIVE} then seen.next_inactive.offset else offset end",
                message="broker {broker} leads (ISR {new}) although it is not active",
                broker="about",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="A3",
        title="Only active replicas enter an ISR",
        statement="Whoever a record adds to an ISR was active just before it.",
        source="KIP-841, KIP-903; ReplicationControlManager.ineligibleReplicasForIsr",
        evidence=Evidence.LOG,
        promised_from=FROM_3_3,
        online=True,
        checks=(
            Check(
                group="activity",
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
        title="Out of the ISR before fenced, unfenced before elected",
        statement="Within an operation partitions leave a broker before it is fenced, and only a "
        "broker that is active already is elected: so it holds for every prefix of the log.",
        source="KIP-841, KIP-631; ReplicationControlManager.handleBrokerFenced, "
        "handleBrokerUnfenced",
        evidence=Evidence.LOG,
        promised_from=FROM_3_3,
        online=True,
        checks=(
            Check(group="broker", when="flips", bad="false", message=""),
            Check(
                group="activity",
                when="what = 'A4'",
                counts=False,
                bad="not keep and coalesce(seen.next_fencing.pos < next_pos, false)",
                offset="seen.next_fencing.offset",
                message="broker {broker} was fenced while it was in the ISR {new}",
                broker="about",
                new="isr",
            ),
            Check(
                group="activity",
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
        statement="When a broker has registered as a new incarnation it is in no ISR and leads "
        "nothing, but for the last member kept while there is no leader.",
        source="KAFKA-18106, KIP-966; ReplicationControlManager.handleBrokerRegistered",
        evidence=Evidence.LOG,
        promised_from=FROM_3_3,
        online=True,
        checks=(
            Check(group="broker", when="is_new", bad="false", message=""),
            Check(
                group="activity",
                when="what = 'A8'",
                counts=False,
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
        id="D2",
        title="The directory of an elected leader works",
        statement="Whoever is elected holds the partition in a log directory that is online.",
        source="KIP-858; ReplicationControlManager.LeaderAcceptor",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                group="activity",
                when="what = 'D2'",
                bad=f"not {_ONLINE}",
                message="broker {broker} was elected (ISR {new}) although its directory is offline",
                broker="about",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="C5",
        title="Unclean only without a clean candidate",
        statement="A leader from outside ISR and ELR is elected only if no member of them is "
        "active, with its directory online, and still is once the operation is done. Where "
        "KIP-589 reports failed replicas, the log does not hold them, and nothing is promised.",
        source="KIP-704, KIP-106; PartitionChangeBuilder.electLeader",
        evidence=Evidence.LOG,
        promised_from=FROM_3_3,
        online=True,
        tables=("rpc",),
        checks=(
            Check(
                group="partition",
                when="unclean",
                bad="false",
                message="",
                promised=_CANDIDATES_KNOWN,
            ),
            Check(
                group="activity",
                when="what = 'C5'",
                counts=False,
                bad=f"{ACTIVE} and {_STAYS_ONLINE}",
                message="an unclean election although broker {broker} of the ISR {old} was active",
                broker="about",
                old="p_isr",
                promised=_CANDIDATES_KNOWN,
            ),
            Check(
                group="elections",
                when="true",
                counts=False,
                bad="election_type <> 1",
                message="request {number} asked for a preferred election, and broker {broker} from "
                "outside the ISR {old} was elected",
                broker="leader",
                old="p_isr",
                number="id",
            ),
        ),
    ),
)

# The part of E17 that asks about brokers.
ISR_OF_NEW = Check(
    group="activity",
    when="what = 'E17'",
    counts=False,
    bad=f"{ACTIVE} <> member",
    message="a new partition's ISR {new} is not the active part of its replicas: see broker "
    "{broker}",
    broker="about",
    new="isr",
)
