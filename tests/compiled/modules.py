"""The modules that the compiled wheel has as native code, by room.

They are those in which a running cluster spends its time, by a profile of an idle and of a loaded
one. Files that are written once per run, and pages that a user sees at its end, gain nothing.

Left out, and why:

* ``actors.runtime.runtime`` and ``simulated``: they derive from Pykka's classes, and Pykka is not
  compiled. Classes that derive from them are compiled as ordinary Python classes.
* ``lazy_dataclass``, ``planting`` and ``planted.py``: they make functions at run time.
* ``protocol``: its codecs are generated at run time.
* ``broker``, ``coordinator``, ``scenario`` and ``cli``: seldom called.
"""

from __future__ import annotations

from collections.abc import Mapping

PACKAGE = "minicluster"
BASE = "base"

# ``base`` holds the modules beside the rooms.
ROOMS: Mapping[str, str] = {
    "base": """
        effects java_order
    """,
    "log": """
        batch control epochs format/framing format/varint log record_scan records
    """,
    "metadata": """
        batch_loader image/cluster image/delta image/features image/folded_run
        image/metadata_image image/tables image/topics loader metadata_version shared_folds
        snapshot_generator
    """,
    "quorum": """
        effects errors listener_context machine message_epoch polling/follower polling/leader
        polling/send polling/turn replication requests/fetch requests/handlers
        requests/validation responses/fetch responses/handlers settings state/__init__
        state/batch_accumulator state/epoch_election state/epoch_state state/leader_state
        state/majority state/node state/parked_fetches state/raft_log state/refusals
        state/request_manager state/voter_set_history state/voters
        voter_changes/follower_requests voter_changes/handler_state wire
    """,
    "controller": """
        api controller_apis deciding/broker_changes deferred_responses machine
        operations/broker_heartbeat periodic_tasks state/broker_heartbeat_manager
        state/cluster_state state/offline_replicas state/offset_control state/pending_alter_isr
        task_timers
    """,
    "replica": """
        appending/append_records appending/log_validator appending/produced_records broker_view
        cleaning/retention fetching/fetch_session_handler fetching/fetch_state fetching/fetcher
        fetching/leader_endpoint log_config log_manager machine partition/follower_log
        partition/high_watermark partition/isr partition/isr_state partition/leader_log
        partition/partition partition/reads partition/replica_log partition/replica_state
        partition/results partition/trace producers/states producers/verification
        requests/delayed_fetch requests/fetch requests/optional_epoch
        requests/preferred_read_replica requests/produce requests/produce_order requests/purgatory
        requests/read_from_log requests/settled
        sessions/fetch_context sessions/fetch_session sessions/fetch_session_cache
        state/broker_context state/replica_manager_state to_controller/alter_partition_manager
        to_controller/controller_channel to_coordinator/add_partitions_to_txn
    """,
    "actors": """
        cluster/client links network nodes/broker nodes/clock nodes/metadata_publisher
        nodes/quorum_controller nodes/quorum_shell nodes/replica_manager nodes/shell
        recording/bodies recording/exchange recording/followers recording/metadata_sink
        recording/raft_trace recording/recorder runtime/chance runtime/turns
    """,
    "verify": """
        online/batch_rules online/broker_rules online/checker online/client_checker
        online/findings online/log_state online/operation_rules online/quorum_checker
        online/replica_checker online/topic_rules rules/replicas/logs_by_events
    """,
}

# The module of ``draws.py`` in the wheel.
DRAWS = f"{PACKAGE}/_draws.py"

# Text that is another one in the wheel. Attributes that a subclass declares again with a narrower
# type: a native class has one place for an attribute, of one type. Draws of chance, by ``draws.py``.
REPLACED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "minicluster/actors/runtime/chance.py": (
        (
            "    return chain.from_iterable(_blocks(source, first, stride))\n",
            "    from minicluster._draws import draws as in_words\n"
            "    return in_words(source, first, stride)\n",
        ),
    ),
    "minicluster/replica/state/replica_manager_state.py": (
        ("    alter_partition_manager: AlterPartitionManager\n", ""),
    ),
    "minicluster/replica/state/broker_context.py": (
        (
            "    alter_partition_manager: SubmitsAlterPartition\n",
            "    alter_partition_manager: Any\n",
        ),
    ),
}

# Pure classes that compiled ones derive from: no class below them is native.
PURE_BASES = frozenset({("minicluster.actors.runtime.runtime", "ClusterActor")})


def files(room: str) -> list[str]:
    """The files of a room, as paths from the top of the package's parent."""
    folder = PACKAGE if room == BASE else f"{PACKAGE}/{room}"
    return [f"{folder}/{name}.py" for name in ROOMS[room].split()]


def module_name(path: str) -> str:
    """The name by which a file is imported."""
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def modules() -> dict[str, str]:
    """All compiled modules: their files by their names."""
    return {module_name(path): path for room in ROOMS for path in files(room)}
