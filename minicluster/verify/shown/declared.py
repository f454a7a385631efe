"""Views of a run or a log for people: what each column is, and how Spark computes it.

They are SQL over tables whose names begin with ``minicluster_``: states as the histories make them
(``states``), what clients did (``operations``), and what lies there as it is, records, traces and
znodes (``worker``). Offsets are those of the committed metadata log, or zxids of a run
on ZooKeeper; times are when the record was written, or of a run's virtual clock.
"""

from __future__ import annotations

from minicluster.errors import UserError, instead
from minicluster.values import Value
from minicluster.verify.evidence.response_errors import errors_in_sql
from minicluster.verify.spark.rows import COLUMNS, Column


class ShownView(Value, kw_only=True):
    """One view: its meaning, its columns in order, and its SQL.

    Shapes:  sql: of metadata logs and of traces. znodes: for the same columns from a log of
             ZooKeeper, where it has such rows. of_trace: it has rows only for a run.
    """

    name: str
    about: str
    columns: tuple[Column, ...]
    sql: str = ""
    znodes: str = ""
    of_trace: bool = False


_PLACE: tuple[Column, ...] = (
    ("run", "string", "name of the run or log"),
    ("offset", "bigint", "offset of the record"),
    ("time", "timestamp", "when the record was written"),
)
_PARTITION: tuple[Column, ...] = (
    ("topic", "string", "name of the topic"),
    ("partition", "int", "number of the partition"),
)
_SELECT = "select run, offset, timestamp_millis(ms)"
_OF_RECORDS = [column for column in COLUMNS if column[0] not in ("file", "snapshot_end")]
_RECORD_COLUMNS: tuple[Column, ...] = (
    *(
        (name, "timestamp" if name == "timestamp" else kind, text)
        for name, kind, text in _OF_RECORDS
    ),
    ("time", "timestamp", "when the record was written, as in the other views"),
)
_TIMESTAMP = "timestamp_millis(timestamp)"
_RECORD_FIELDS = ", ".join(
    [*(_TIMESTAMP if name == "timestamp" else name for name, _, _ in _OF_RECORDS), _TIMESTAMP]
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
        sql=f"select run, {_RECORD_FIELDS} from minicluster_records",
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
        sql=f"select run, file, snapshot_end, {_RECORD_FIELDS} from minicluster_snapshot_records",
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
            ("rack", "string", "its rack"),
        ),
        sql=f"""{_SELECT}, kind, broker, epoch, registered, fenced, in_controlled_shutdown, active,
          log_dirs, metadata_version, rack from minicluster_broker_states""",
        znodes=f"""{_SELECT}, kind, broker, epoch, kind = 'Register', kind <> 'Register',
          cast(null as boolean), kind = 'Register', cast(null as array<string>), cast(null as int),
          cast(null as string) from minicluster_znode_brokers""",
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
            ("time", "timestamp", "as `created`"),
        ),
        sql="""select run, topic, topic_id, created_at, timestamp_millis(ms), deleted_at,
          partitions, timestamp_millis(ms)
          from (select run, topic_id, first(topic, true) as topic,
              min(offset) filter (where kind = 'Topic') as created_at,
              min(ms) filter (where kind = 'Topic') as ms,
              max(offset) filter (where kind = 'RemoveTopic') as deleted_at,
              count(*) filter (where kind = 'Partition') as partitions
            from minicluster_topic_steps group by run, topic_id)""",
        znodes="""select run, topic, topic_id, created_at, timestamp_millis(ms),
          case when gone_kind = 'Delete' then gone_at end, cast(partitions as bigint),
          timestamp_millis(ms)
          from (select *, lead(offset) over life as gone_at, lead(kind) over life as gone_kind
            from (select run, topic, kind, topic_id, is_new, offset as created_at, offset, ms,
                max(partitions) over (partition by run, topic) as partitions
              from minicluster_znode_topics where is_new or kind = 'Delete')
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
        sql=f"""{_SELECT}, topic, partition, topic_id, kind, exists, leader, leader_epoch,
          partition_epoch, isr, replicas, adding, removing, elr, last_known_elr,
          leader_recovery_state, directories from minicluster_partition_states""",
        znodes="""select run, offset, timestamp_millis(ms), topic, part,
          cast(null as string), case when kind = 'Delete' then 'Delete' when p_isr is null
            then 'Create' else 'Change' end, kind = 'Write', leader, cast(leader_epoch as bigint),
          cast(version as bigint), isr, replicas, cast(null as array<int>),
          cast(null as array<int>), cast(null as array<int>), cast(null as array<int>), rec,
          cast(null as array<string>) from minicluster_znode_states""",
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
            ("time", "timestamp", "as `from_time`"),
        ),
        sql="""select run, topic, partition, offset, to_offset, timestamp_millis(ms),
          timestamp_millis(to_ms), leader, leader_epoch, partition_epoch, isr, replicas,
          timestamp_millis(ms)
          from (select *, lead(offset) over life as to_offset, lead(ms) over life as to_ms
            from minicluster_partition_states
            window life as (partition by run, topic_id, partition order by offset))
          where is_state""",
        znodes="""select run, topic, part, offset, next_offset, timestamp_millis(ms),
          timestamp_millis(next_ms), leader, cast(leader_epoch as bigint), cast(version as bigint),
          isr, replicas, timestamp_millis(ms)
          from (select *, lead(offset) over life as next_offset, lead(ms) over life as next_ms
            from minicluster_znode_states
            window life as (partition by run, topic, part order by pos))
          where kind = 'Write'""",
    ),
    ShownView(
        name="fencing",
        about="each time that a broker was fenced or unfenced",
        columns=(
            *_PLACE,
            ("broker", "int", "id of the broker"),
            ("fenced", "boolean", "it is fenced, or not registered, from here on"),
            ("until", "timestamp", "when that ended; null: it lasts"),
            (
                "cause",
                "string",
                "session expired, controlled shutdown, unregistered, restarted; null: it was "
                "unfenced; on ZooKeeper: session ended",
            ),
            ("epoch", "bigint", "its broker epoch"),
            ("kind", "string", "the record that did it"),
        ),
        sql=f"""{_SELECT}, broker, is_out,
          lead(timestamp_millis(ms)) over (partition by run, broker order by offset),
          case when not is_out then null when kind = 'Unregister' then 'unregistered'
            when kind = 'Register' then 'restarted'
            when in_controlled_shutdown then 'controlled shutdown' else 'session expired' end,
          epoch, kind
          from (select *, fenced or not registered as is_out, was_fenced or not was_registered
            as was_out from minicluster_broker_states)
          where is_out <> was_out""",
        znodes=f"""{_SELECT}, broker, kind <> 'Register',
          lead(timestamp_millis(ms)) over (partition by run, broker order by offset),
          case when kind <> 'Register' then 'session ended' end, epoch, kind
          from minicluster_znode_brokers""",
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
        sql=f"""{_SELECT}, topic, partition, leader, isr_before, isr, array_except(isr, isr_before),
          array_except(isr_before, isr) from minicluster_partition_states
          where is_change and array_sort(isr) <> array_sort(isr_before)""",
        znodes=f"""{_SELECT}, topic, part, leader, p_isr, isr, array_except(isr, p_isr),
          array_except(p_isr, isr) from minicluster_znode_states
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
        sql=f"""{_SELECT}, topic, partition, leader_before, leader, leader_epoch, unclean
          from minicluster_partition_states where is_change and leader <> leader_before""",
        znodes=f"""{_SELECT}, topic, part, p_leader, leader, cast(leader_epoch as bigint),
          leader <> -1 and not array_contains(p_isr, leader)
          from minicluster_znode_states where p_isr is not null and leader <> p_leader""",
    ),
    ShownView(
        name="leaders_of_the_quorum",
        about="each epoch of the quorum that has a leader, by its LeaderChange records",
        columns=(
            *_PLACE,
            ("epoch", "int", "epoch of the quorum"),
            ("controller", "int", "its leader, the active controller"),
        ),
        sql=f"{_SELECT}, epoch, elected from minicluster_quorum_leaders",
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
        sql=f"{_SELECT}, epoch, elected from minicluster_quorum_leaders",
        znodes=f"{_SELECT}, epoch, broker from minicluster_znode_controllers where kind = 'Epoch'",
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
        znodes=f"""{_SELECT}, topic, part, topic_id, kind, replicas, adding, removing
          from minicluster_znode_assignments""",
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
          ephemeral, data, multi_place, multi_count, error from minicluster_znode_log""",
    ),
    ShownView(
        name="configs",
        about="each value of a config that was ever set for its resource, while it was in effect",
        columns=(
            *_PLACE,
            ("until", "timestamp", "when another value came into effect; null: it lasts"),
            ("to_offset", "bigint", "offset of the record that ended it; null: it lasts"),
            ("resource_type", "string", "topic, broker, cluster, group, …"),
            ("resource", "string", "name of the topic, id of the broker, …"),
            ("config", "string", "name of the config"),
            ("value", "string", "as it is set for this resource; null: it is not"),
            ("effective", "string", "the value in effect: else the cluster's, or the default"),
            ("source", "string", "where that comes from, in Kafka's words"),
        ),
        sql=f"""{_SELECT}, timestamp_millis(to_ms), to_offset, resource_type, resource, config,
          value, effective, source
          from (select *, lead(offset) over life as to_offset, lead(ms) over life as to_ms
            from minicluster_config_states
            window life as (partition by run, resource_type, resource, config order by offset))
          where source is not null""",
    ),
    ShownView(
        name="under_min_isr",
        about="each period in which a partition had fewer in-sync replicas than its effective "
        "min.insync.replicas",
        columns=(
            *_PLACE,
            ("until", "timestamp", "when it had enough, or was deleted; null: it lasts"),
            ("to_offset", "bigint", "offset of the record that ended it; null: it lasts"),
            *_PARTITION,
            ("topic_id", "string", "id of the topic"),
            ("min_isr", "int", "min.insync.replicas in effect, at most the replicas"),
            ("isr", "array<int>", "in-sync replicas as it began"),
            ("fewest", "int", "the fewest in-sync replicas while it lasted"),
            ("leader", "int", "broker that led as it began; -1: none"),
        ),
        sql=f"""{_SELECT}, timestamp_millis(to_ms), to_offset, topic, partition, topic_id, min_isr,
          isr, fewest, leader from minicluster_under_min_isr""",
    ),
    ShownView(
        name="client_operations",
        about="each record that a client of a run produced or read (needs its trace)",
        of_trace=True,
        columns=(
            ("run", "string", "name of the run"),
            ("time", "timestamp", "when the response was there, or was given up"),
            ("client", "string", "as it calls itself, or its connection"),
            ("operation", "string", "produce, read"),
            *_PARTITION,
            ("topic_id", "string", "id of the topic; null: not known"),
            ("offset", "bigint", "where it was acknowledged or read; null: nowhere"),
            (
                "value",
                "string",
                "its value, or a digest; null: of a Produce without acknowledgement",
            ),
            ("acks", "int", "0, 1, -1 (all in-sync replicas)"),
            ("outcome", "string", "acknowledged, failed, unknown (no response), read"),
            ("error", "string", "of the response, or why there is none"),
            (
                "lost",
                "boolean",
                "rule F1 accuses: not in the log of the last leader; null: not judged",
            ),
            ("excuse", "string", "why F1 does not judge it"),
        ),
        sql="""select run, timestamp_millis(ms), client, operation, topic, partition, topic_id,
          offset, value, acks, outcome, error, lost, excuse from minicluster_client_operations""",
    ),
    ShownView(
        name="requests",
        about="each request of a run (needs its trace)",
        of_trace=True,
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
            ("error", "string", "the first error in the response, at any depth, or NONE"),
            ("errors", "array<string>", "all errors in it, each once"),
            ("records_written", "array<bigint>", "offsets of the records that it wrote"),
            ("request", "string", "Kafka's JSON form"),
            ("response", "string", "Kafka's JSON form"),
            ("time", "timestamp", "as `sent`"),
        ),
        sql=f"""select run, id, api, version, src, dst, timestamp_millis(sent_ms),
          timestamp_millis(handled_ms), timestamp_millis(completed_ms),
          coalesce(nullif(error, 'NONE'), get(errors, 0), error), errors, records_written,
          request, response, timestamp_millis(sent_ms)
          from (select *, {errors_in_sql("response")} as errors from minicluster_rpc)""",
    ),
    ShownView(
        name="refusals",
        about="each time that a controller of a run rejected a request of a broker, or one "
        "partition of it (needs its trace)",
        columns=(
            ("run", "string", "name of the run"),
            ("time", "timestamp", "when it was rejected"),
            ("controller", "bigint", "the active controller that did"),
            ("api", "string", "name of the API"),
            ("broker", "bigint", "broker that sent the request, where that names it"),
            *_PARTITION[:1],
            ("partition", "bigint", "number of the partition; null: the whole request"),
            ("error", "string", "the error in the response"),
            ("reason", "string", "why, in two or three words: one error has several reasons"),
            ("message", "string", "the sentence that Kafka logs"),
            ("request", "bigint", "`id` of the request; null: its response had left"),
        ),
        sql="""select run, timestamp_millis(vt), node, api, broker, topic, part, error, reason,
          message, rpc from minicluster_refusal""",
    ),
    ShownView(
        name="disturbances",
        about="each disturbance of a run: steps of its scenario and planted faults",
        of_trace=True,
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
          from minicluster_fault order by run, seq""",
    ),
)

BY_NAME = {view.name: view for view in SHOWN_VIEWS}


def view_named(name: str) -> ShownView:
    """The view of a name.

    Errors:  UserError with a name that may be meant.
    """
    if name not in BY_NAME:
        raise UserError(f"unknown view {name!r}; {instead(name, list(BY_NAME))}")
    return BY_NAME[name]
