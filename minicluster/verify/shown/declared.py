"""Views of a run or a log for people: what each column is, and how Spark computes it.

They are SQL over the tables of facts and over the rules' own folds. Offsets are those of the
committed metadata log, or zxids of a run on ZooKeeper; times are when the record was written, or of
a run's virtual clock.
"""

from __future__ import annotations

from minicluster.lazy_dataclass import dataclass
from minicluster.verify.spark.rows import COLUMNS

Column = tuple[str, str, str]  # name, type, meaning


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownView:
    """One view: its meaning, its columns in order, and its SQL.

    Shapes:  znodes: SQL for the same columns from a log of ZooKeeper, where it has such rows.
    """

    name: str
    about: str
    columns: tuple[Column, ...]
    sql: str = ""
    znodes: str = ""


_PLACE: tuple[Column, ...] = (
    ("run", "string", "name of the run or log"),
    ("offset", "bigint", "offset of the record"),
    ("time", "timestamp", "when the record was written"),
)
_PARTITION: tuple[Column, ...] = (
    ("topic", "string", "name of the topic"),
    ("partition", "int", "number of the partition"),
)
_SELECT = "select x.run, x.offset, t.time"
_TIME = "left join record_times t on x.run = t.run and x.offset = t.offset"
_ZNODE = "select run, offset, timestamp_millis(ms)"
_RECORD_COLUMNS: tuple[Column, ...] = tuple(
    (name, "timestamp" if name == "timestamp" else kind, "as in the record")
    for name, kind in COLUMNS
    if name not in ("file", "snapshot_end")
)
_RECORD_FIELDS = ", ".join(
    "timestamp_millis(timestamp) as timestamp" if name == "timestamp" else name
    for name, _, _ in _RECORD_COLUMNS
)
_STATE: tuple[Column, ...] = (
    ("leader", "int", "broker that leads; -1: none"),
    ("leader_epoch", "bigint", "raised by each record that names a leader"),
    ("partition_epoch", "bigint", "raised by each change"),
    ("isr", "array<int>", "in-sync replicas"),
    ("replicas", "array<int>", "all replicas, in order of preference"),
)

SHOWN_VIEWS: tuple[ShownView, ...] = (
    ShownView(
        name="records",
        about="the records of the committed log",
        columns=(("run", "string", "name of the run or log"), *_RECORD_COLUMNS),
        sql=f"select run, {_RECORD_FIELDS} from log_records",
    ),
    ShownView(
        name="snapshot_records",
        about="the records of the snapshots beside the log",
        columns=(
            ("run", "string", "name of the run or log"),
            ("file", "string", "name of the checkpoint"),
            ("snapshot_end", "bigint", "offset at which it ends, exclusive"),
            *_RECORD_COLUMNS,
        ),
        sql=f"select run, file, snapshot_end, {_RECORD_FIELDS} from checkpoint_records",
    ),
    ShownView(
        name="brokers",
        about="each broker's registration as of each record about it",
        columns=(
            *_PLACE,
            ("kind", "string", "Register, Unregister, Fence, Unfence, Change"),
            ("broker", "int", "id of the broker"),
            ("epoch", "bigint", "broker epoch of the registration"),
            ("registered", "boolean", "it is registered"),
            ("fenced", "boolean", "it is fenced"),
            ("in_controlled_shutdown", "boolean", "it shuts down"),
            ("active", "boolean", "registered, unfenced, not shutting down"),
            ("log_dirs", "array<string>", "ids of its log directories"),
            ("metadata_version", "int", "level in effect"),
        ),
        sql=f"""{_SELECT}, kind, broker, epoch, registered, fenced, in_controlled_shutdown, active,
          log_dirs, mv from broker_states x {_TIME}""",
        znodes=f"""{_ZNODE}, kind, broker, epoch, kind = 'Register', kind <> 'Register',
          cast(null as boolean), kind = 'Register', cast(null as array<string>), cast(null as int)
          from znode_brokers""",
    ),
    ShownView(
        name="topics",
        about="each topic that ever was",
        columns=(
            ("run", "string", "name of the run or log"),
            ("topic", "string", "its name"),
            ("topic_id", "string", "its id"),
            ("created_at", "bigint", "offset of its TopicRecord"),
            ("created", "timestamp", "when that was written"),
            ("deleted_at", "bigint", "offset of its RemoveTopicRecord; null: it lives"),
            ("partitions", "bigint", "partitions created"),
        ),
        sql="""select x.run, x.topic, x.topic_id, x.created_at, t.time, x.deleted_at, x.partitions
          from (select run, max(topic) as topic, topic_id,
              min(case when kind = 'Topic' then offset end) as created_at,
              max(case when kind = 'RemoveTopic' then offset end) as deleted_at,
              count_if(kind = 'Partition') as partitions
            from topics where topic_id is not null group by run, topic_id) x
          left join record_times t on x.run = t.run and x.created_at = t.offset""",
        znodes="""select run, topic, topic_id, created_at, timestamp_millis(ms),
          case when gone_kind = 'Delete' then gone_at end, cast(partitions as bigint)
          from (select *, lead(offset) over life as gone_at, lead(kind) over life as gone_kind
            from (select run, topic, kind, topic_id, is_new, offset as created_at, offset, ms,
                max(partitions) over (partition by run, topic) as partitions
              from znode_topics where is_new or kind = 'Delete')
            window life as (partition by run, topic order by offset))
          where is_new""",
    ),
    ShownView(
        name="partitions",
        about="each partition as of each record about it",
        columns=(
            *_PLACE,
            *_PARTITION,
            ("topic_id", "string", "id of the topic"),
            ("kind", "string", "Partition, Change, ClearElr, RemoveTopic"),
            ("exists", "boolean", "the partition exists after the record"),
            *_STATE,
            ("adding", "array<int>", "replicas that a reassignment adds"),
            ("removing", "array<int>", "replicas that it removes"),
            ("elr", "array<int>", "eligible leader replicas"),
            ("last_known_elr", "array<int>", "last known leaders"),
            ("leader_recovery_state", "int", "0 RECOVERED, 1 RECOVERING"),
            ("directories", "array<string>", "log directory of each replica"),
        ),
        sql=f"""{_SELECT}, topic, part, topic_id, kind, alive, leader, le, pe, isr, replicas,
          adding, removing, elr, last_elr, rec, directories from partition_states x {_TIME}""",
        znodes="""select run, offset, timestamp_millis(ms), topic, part,
          cast(null as string), case when kind = 'Delete' then 'Delete' when p_isr is null
            then 'Create' else 'Change' end, kind = 'Write', leader, cast(leader_epoch as bigint),
          cast(version as bigint), isr, replicas, cast(null as array<int>),
          cast(null as array<int>), cast(null as array<int>), cast(null as array<int>), rec,
          cast(null as array<string>) from znode_states""",
    ),
    ShownView(
        name="partition_states",
        about="the states of each partition and how long each lasted",
        columns=(
            ("run", "string", "name of the run or log"),
            *_PARTITION,
            ("from_offset", "bigint", "offset of the record that made the state"),
            ("to_offset", "bigint", "offset of the next change; null: it lasts"),
            ("from_time", "timestamp", "when the state was made"),
            ("to_time", "timestamp", "when it was changed; null: it lasts"),
            *_STATE,
        ),
        sql="""select x.run, x.topic, x.part, x.offset, x.next_offset, b.time, e.time, x.leader,
          x.le, x.pe, x.isr, x.replicas
          from (select *, lead(offset) over (partition by run, topic_id, part order by pos)
              as next_offset from partition_states) x
          left join record_times b on x.run = b.run and x.offset = b.offset
          left join record_times e on x.run = e.run and x.next_offset = e.offset
          where x.state""",
        znodes="""select run, topic, part, offset, next_offset, timestamp_millis(ms),
          timestamp_millis(next_ms), leader, cast(leader_epoch as bigint), cast(version as bigint),
          isr, replicas
          from (select *, lead(offset) over life as next_offset, lead(ms) over life as next_ms
            from znode_states window life as (partition by run, topic, part order by pos))
          where kind = 'Write'""",
    ),
    ShownView(
        name="fencing",
        about="each time that a broker was fenced or unfenced",
        columns=(
            *_PLACE,
            ("broker", "int", "id of the broker"),
            ("fenced", "boolean", "it is fenced from here on"),
            ("epoch", "bigint", "its broker epoch"),
            ("kind", "string", "the record that did it"),
        ),
        sql=f"""{_SELECT}, broker, fenced, epoch, kind from broker_states x {_TIME}
          where d_fenced is not null and not (coalesce(p_fenced, true) <=> d_fenced)""",
        znodes=f"{_ZNODE}, broker, kind <> 'Register', epoch, kind from znode_brokers",
    ),
    ShownView(
        name="isr_changes",
        about="each record that changed an ISR",
        columns=(
            *_PLACE,
            *_PARTITION,
            ("leader", "int", "broker that leads after it"),
            ("isr_before", "array<int>", "ISR before it"),
            ("isr", "array<int>", "ISR after it"),
            ("joined", "array<int>", "replicas that came in"),
            ("left", "array<int>", "replicas that went out"),
        ),
        sql=f"""{_SELECT}, topic, part, leader, p_isr, isr, array_except(isr, p_isr),
          array_except(p_isr, isr) from partition_states x {_TIME}
          where change and array_sort(isr) <> array_sort(p_isr)""",
        znodes=f"""{_ZNODE}, topic, part, leader, p_isr, isr, array_except(isr, p_isr),
          array_except(p_isr, isr) from znode_states
          where p_isr is not null and array_sort(isr) <> array_sort(p_isr)""",
    ),
    ShownView(
        name="elections",
        about="each record that gave a partition another leader",
        columns=(
            *_PLACE,
            *_PARTITION,
            ("leader_before", "int", "leader before; -1: none"),
            ("leader", "int", "leader after; -1: none"),
            ("leader_epoch", "bigint", "leader epoch after"),
            ("unclean", "boolean", "elected from outside ISR and ELR"),
        ),
        sql=f"""{_SELECT}, topic, part, p_leader, leader, le, unclean
          from partition_states x {_TIME} where change and leader <> p_leader""",
        znodes=f"""{_ZNODE}, topic, part, p_leader, leader, cast(leader_epoch as bigint),
          leader <> -1 and not array_contains(p_isr, leader)
          from znode_states where p_isr is not null and leader <> p_leader""",
    ),
    ShownView(
        name="leaders_of_the_quorum",
        about="each epoch of the quorum that has a leader, by its LeaderChange records",
        columns=(
            *_PLACE,
            ("epoch", "int", "epoch of the quorum"),
            ("controller", "int", "its leader, the active controller"),
        ),
        sql=f"""{_SELECT}, epoch, elected from (select distinct run, offset, epoch, elected
          from batches where elected is not null) x {_TIME}""",
    ),
    ShownView(
        name="controllers",
        about="each term of an active controller: of the quorum's leader, or of a broker that is "
        "the controller on ZooKeeper",
        columns=(
            *_PLACE,
            ("epoch", "int", "epoch of the quorum, or controller epoch"),
            ("controller", "int", "the active controller"),
        ),
        sql=f"""{_SELECT}, epoch, elected from (select distinct run, offset, epoch, elected
          from batches where elected is not null) x {_TIME}""",
        znodes=f"{_ZNODE}, epoch, broker from znode_controllers where kind = 'Epoch'",
    ),
    ShownView(
        name="assignments",
        about="on ZooKeeper: the replicas of each partition as of each write of its topic's znode",
        columns=(
            *_PLACE,
            *_PARTITION,
            ("topic_id", "string", "id of the topic; null below IBP 2.8"),
            ("kind", "string", "Write, Delete"),
            ("replicas", "array<int>", "all replicas, in order of preference"),
            ("adding", "array<int>", "replicas that a reassignment adds"),
            ("removing", "array<int>", "replicas that it removes"),
        ),
        znodes=f"""{_ZNODE}, topic, part, topic_id, kind, replicas, adding, removing
          from znode_assignments""",
    ),
    ShownView(
        name="znode_operations",
        about="on ZooKeeper: each operation of its transaction log",
        columns=(
            ("run", "string", "name of the run"),
            ("zxid", "bigint", "number of its transaction"),
            ("time", "timestamp", "when it was committed"),
            ("session", "string", "session of the client"),
            ("broker", "int", "broker that has this session; null: another client"),
            ("kind", "string", "create, set, delete, check, error, create_session, close_session"),
            ("path", "string", "path of the znode"),
            ("version", "int", "version after it; of a check the expected one"),
            ("ephemeral", "boolean", "the znode goes with its session"),
            ("data", "string", "text of the znode"),
            ("multi_place", "int", "its place in a transaction of several"),
            ("multi_count", "int", "operations of that transaction"),
            ("error", "string", "ZooKeeper's error"),
        ),
        znodes="""select run, offset, timestamp_millis(ms), session, broker, kind, path, version,
          ephemeral, data, multi_place, multi_count, error from znode_log""",
    ),
    ShownView(
        name="requests",
        about="each request of a run (needs its trace)",
        columns=(
            ("run", "string", "name of the run"),
            ("id", "bigint", "number of the request"),
            ("api", "string", "name of the API"),
            ("version", "bigint", "version of the request"),
            ("src", "bigint", "node that sent it"),
            ("dst", "bigint", "node that received it"),
            ("sent", "timestamp", "when it was sent"),
            ("handled", "timestamp", "when it was handled; null: it was lost"),
            ("completed", "timestamp", "when the response came; null: none came"),
            ("error", "string", "the response's error"),
            ("records_written", "array<bigint>", "offsets of the records that it wrote"),
            ("request", "string", "Kafka's JSON form"),
            ("response", "string", "Kafka's JSON form"),
        ),
        sql="""select run, id, api, version, src, dst, timestamp_millis(sent_ms),
          timestamp_millis(handled_ms), timestamp_millis(completed_ms), error, records_written,
          request, response from rpc""",
    ),
    ShownView(
        name="disturbances",
        about="each disturbance of a run: steps of its scenario and planted faults",
        columns=(
            ("run", "string", "name of the run"),
            ("time", "timestamp", "when"),
            ("step", "bigint", "number of the step"),
            ("action", "string", "name of the action"),
            ("phase", "string", "start, stop, hit, note"),
            ("targets", "string", "nodes and links, as JSON"),
            ("detail", "string", "more about it"),
        ),
        sql="""select run, timestamp_millis(vt), step, action, phase, targets, detail
          from fault order by run, seq""",
    ),
)
