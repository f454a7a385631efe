"""Log directories (KIP-858): the broker that owns each, and replicas in one that has failed.

The events of a directory and the ISR members in it are one stream per directory. A member is judged
where its operation ends; its membership may last until the directory is lost later.
"""

from __future__ import annotations

from minicluster.verify.rules.log.active_brokers import KEEP
from minicluster.verify.rules.log.partitions import DIRECTORIES
from minicluster.verify.rules.model import Check, Evidence, Rule, View
from minicluster.verify.rules.replicas.held_logs import LED_OFFLINE
from minicluster.verify.rules.replicas.replica_logs import LEADS_FROM_DEAD_DIRECTORY

_NO_LOG_DIRS = "cast(array() as array<string>)"

_RESERVED = "'AAAAAAAAAAAAAAAAAAAAAA', 'AAAAAAAAAAAAAAAAAAAAAQ', 'AAAAAAAAAAAAAAAAAAAAAg'"

_EVENTS = f"""
select run, offset, op, pos, mv, broker, judged, 0 as rank, inline(concat(
  case when kind in ('Register', 'Change') and size(log_dirs) > 0
    then transform(array_except(coalesce(p_log_dirs, {_NO_LOG_DIRS}), log_dirs),
      d -> named_struct('what', 'L', 'directory', d)) else array() end,
  case when kind = 'Register' and size(log_dirs) > 0
    then transform(log_dirs, d -> named_struct('what', 'G', 'directory', d)) else array() end,
  case when kind = 'Unregister' and size(log_dirs) > 0
    then transform(log_dirs, d -> named_struct('what', 'R', 'directory', d)) else array() end))
from broker_states
"""

_STATES = f"""
select *,
  last(case when what in ('G', 'L') then what end, true) over (
    partition by run, directory, broker order by op, rank, pos
    rows between unbounded preceding and current row) as last_change,
  last(case when what in ('G', 'L') then pos end, true) over (
    partition by run, directory, broker order by op, rank, pos
    rows between unbounded preceding and current row) as last_change_pos,
  last(case when what = 'L' then named_struct('offset', offset, 'op', op) end, true) over (
    partition by run, directory, broker order by op desc, rank desc, pos desc
    rows between unbounded preceding and 1 preceding) as next_loss,
  last(case when what <> 'M' then named_struct('what', what, 'broker', broker) end, true) over (
    partition by run, directory order by op, rank, pos
    rows between unbounded preceding and 1 preceding) as before
from (
  select run, offset, op, pos, mv, broker, judged, rank, what, directory,
    cast(null as bigint) as next_op, cast(null as string) as topic, cast(null as int) as part,
    cast(null as array<int>) as isr, cast(null as boolean) as keep, cast(null as bigint) as since
  from directory_events
  union all
  select run, offset, op, pos, mv, member, judged, 1, 'M',
    get(directories, cast(array_position(replicas, member) as int) - 1), next_op, topic, part,
    isr, keep, since
  from (
    select *, last(case when array_contains(added, member) then pos end, true) over (
      partition by run, topic_id, part, member order by pos
      rows between unbounded preceding and current row) as since
    from (
      select *, explode(isr) as member, {KEEP} as keep from partition_states where state
    )
  ) where final and size(directories) = size(replicas) and array_contains(replicas, member)
)
"""

# A leader that applies the loss late may propose the replica once more, and the controller does not
# check directories then: Kafka does not promise that such a replica stays out.
_JOINED = "coalesce(last_change = 'L' and since > last_change_pos, false)"

_MEMBER = f"what = 'M' and directory not in ({_RESERVED})"


VIEWS = (
    View(name="directory_events", sql=_EVENTS),
    View(name="directory_states", sql=_STATES),
)

RULES = (
    Rule(
        id="D1",
        title="No ISR member is in an offline log directory",
        statement="When a log directory is recorded as offline, its replicas are in no ISR and "
        "lead no partition, except for the last member, which stays while there is no leader. A "
        "replica that a leader proposes again later is not promised: the controller does not "
        "check directories then. No running broker leads a partition whose log lies in a directory "
        "that failed longer ago than the timeout for it, or that it has found to be offline.",
        source="KIP-858, KIP-589; ReplicationControlManager.handleDirectoriesOffline, "
        "ineligibleReplicasForIsr",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                view="directory_states",
                when=_MEMBER,
                bad="not keep and (coalesce(last_change = 'L', false) "
                "or coalesce(next_loss.op < next_op, false))",
                offset="case when last_change = 'L' then offset else next_loss.offset end",
                message="broker {broker} is in the ISR {new} although its log directory is offline",
                broker="broker",
                new="isr",
                promised=f"(not {_JOINED})",
            ),
            LEADS_FROM_DEAD_DIRECTORY,
            LED_OFFLINE,
        ),
    ),
    Rule(
        id="D5",
        title="Each replica has one directory, each directory one broker",
        statement="A partition has one directory per replica, and no directory belongs to two "
        "brokers.",
        source="KIP-858; PartitionRegistration, ClusterControlManager.registerBroker",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            DIRECTORIES,
            Check(
                view="directory_states",
                when="what = 'G' and judged",
                counts=False,
                bad="coalesce(before.what = 'G' and before.broker <> broker, false)",
                message="broker {broker} registered a log directory of broker {number}",
                broker="broker",
                number="before.broker",
            ),
        ),
    ),
)
