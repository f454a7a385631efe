"""The registrations of each broker: epochs, incarnations, fencing."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View

_STATES = f"""
select *, cast(null as string) as topic, cast(null as int) as part,
  last(case when final and not (active or may_stay)
      then named_struct('offset', offset, 'op', op) end, true)
    over (partition by run, broker order by pos desc
      rows between unbounded preceding and 1 preceding) as next_inactive,
  last(case when flips then named_struct('offset', offset, 'pos', pos) end, true)
    over (partition by run, broker order by pos desc
      rows between unbounded preceding and 1 preceding) as next_fencing,
  last(case when is_new then named_struct('offset', offset, 'op', op) end, true)
    over (partition by run, broker order by pos desc
      rows between unbounded preceding and 1 preceding) as next_new,
  last(case when final then named_struct('op', op, 'active', active, 'log_dirs', log_dirs) end,
      true)
    over (partition by run, broker order by pos desc
      rows between unbounded preceding and 1 preceding) as next_end,
  last(case when is_new then named_struct('offset', offset, 'op', op) end, true)
    over (partition by run, broker order by pos
      rows between unbounded preceding and current row) as last_new
from (
  select *,
    judged and kind in ('Fence', 'Change') and coalesce(p_registered, false)
      and coalesce(d_fenced, false) and not p_fenced as flips,
    judged and kind = 'Register' and coalesce(p_incarnation <> d_incarnation, false) as is_new,
    coalesce(registered and not fenced and not in_controlled_shutdown, false) as active,
    next_op <> op as final
  from (
    select run, offset, pos, op, kind, judged, broker, mv, clean_from, leaves_from,
      may_stay,
      epoch as d_epoch, incarnation as d_incarnation, fenced as d_fenced,
      in_controlled_shutdown as d_shutdown,
      last(case when kind in ('Register', 'Unregister') then kind = 'Register' end, true) over s
        as registered,
      last(case when kind = 'Register' then epoch end, true) over s as epoch,
      last(fenced, true) over s as fenced,
      last(in_controlled_shutdown, true) over s as in_controlled_shutdown,
      last(log_dirs, true) over s as log_dirs,
      last(log_dirs, true) over b as p_log_dirs,
      last(case when kind in ('Register', 'Unregister') then kind = 'Register' end, true) over b
        as p_registered,
      last(case when kind = 'Register' then epoch end, true) over b as p_epoch,
      max(case when kind = 'Register' then epoch end) over b as highest_epoch,
      last(case when kind = 'Register' then incarnation end, true) over b as p_incarnation,
      last(case when kind = 'Register' and judged then offset when kind = 'Register' then epoch
        end, true) over b as registered_at,  -- a snapshot tells the epoch alone
      last(fenced, true) over b as p_fenced,
      last(in_controlled_shutdown, true) over b as p_shutdown,
      coalesce(lead(op) over w, {2**62}) as next_op
    from brokers
    window w as (partition by run, broker order by pos),
      s as (partition by run, broker order by pos
        rows between unbounded preceding and current row),
      b as (partition by run, broker order by pos
        rows between unbounded preceding and 1 preceding)
  )
)
"""


VIEWS = (View(name="broker_states", sql=_STATES),)

RULES = (
    Rule(
        id="D4",
        title="A broker's records carry its current epoch",
        statement="Records that fence, unfence, change or unregister a broker carry the epoch "
        "of its registration.",
        source="KIP-631; ClusterControlManager.replay",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                view="broker_states",
                when="judged and kind <> 'Register' and p_registered",
                bad="d_epoch <> p_epoch",
                message="a record of broker {broker} carries broker epoch {number}, which is "
                "not the registered one",
                broker="broker",
                number="d_epoch",
            ),
        ),
    ),
    Rule(
        id="E20",
        title="Broker epochs are log offsets and increase",
        statement="The broker epoch of a new incarnation is the offset at which its "
        "registration begins, and above every earlier epoch of the broker. Kafka 3.0 to 3.2 do "
        "not count the LeaderChange right before it, so their first epoch may be 0.",
        source="KIP-631; QuorumController.registerBroker, ClusterControlManager.registerBroker",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                view="broker_states",
                when="judged and kind = 'Register' and not "
                "(coalesce(p_registered, false) and p_incarnation = d_incarnation)",
                bad="d_epoch > offset or d_epoch < clean_from",
                message="broker {broker} registered with epoch {number}, which is not the "
                "offset at which its registration begins",
                broker="broker",
                number="d_epoch",
            ),
            Check(
                view="broker_states",
                when="judged and kind = 'Register' and not "
                "(coalesce(p_registered, false) and p_incarnation = d_incarnation)",
                counts=False,
                bad="d_epoch <= highest_epoch",
                message="broker {broker} registered with epoch {number}, not above its earlier "
                "epochs",
                broker="broker",
                number="d_epoch",
            ),
        ),
    ),
    Rule(
        id="E21",
        title="Only a fenced broker is unfenced",
        statement="An unfencing record follows a fenced state; a broker may be fenced twice.",
        source="KIP-631; ReplicationControlManager.handleBrokerUnfenced",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                view="broker_states",
                when="judged and kind <> 'Register' and p_registered and d_fenced is not null",
                bad="not d_fenced and not p_fenced",
                message="broker {broker} was unfenced although it was not fenced",
                broker="broker",
            ),
        ),
    ),
    Rule(
        id="E22",
        title="Registering the same incarnation again changes nothing but its endpoints",
        statement="The same incarnation registering again keeps its epoch, its fencing and its "
        "controlled shutdown.",
        source="KAFKA-16952, KAFKA-16757; ClusterControlManager.registerBroker",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                view="broker_states",
                when="judged and kind = 'Register' and p_registered "
                "and p_incarnation = d_incarnation",
                bad="d_epoch <> p_epoch or d_fenced <> p_fenced or d_shutdown <> p_shutdown",
                message="broker {broker} registered the same incarnation again with another "
                "epoch ({number}), fencing or controlled shutdown",
                broker="broker",
                number="d_epoch",
            ),
        ),
    ),
    Rule(
        id="E23",
        title="Records name only registered brokers",
        statement="No record names a broker before it is registered or after it is unregistered.",
        source="ClusterControlManager.replay",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                view="broker_states",
                when="judged and kind <> 'Register'",
                bad="not coalesce(p_registered, false)",
                message="a record names broker {broker}, which is not registered",
                broker="broker",
            ),
        ),
    ),
)
