"""The event trace of a run: its tables and their columns.

The trace exists because many promises cannot be proved from the metadata log alone. Every row also
carries ``run_id``, ``vt`` (virtual milliseconds) and ``seq`` (the run's global event number), which
the recorder adds. Machines return rows as ``effects.Trace``; the actors write them as Parquet.

Column types: ``int`` (64 bit), ``str``, ``bool``, ``ints`` (list of int), ``json`` (a JSON text).
Every column but the recorder's may be null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CLIENT_ROWS_MAX = 50_000  # of ``client_record``: the first ones of a run
ZNODES = "znodes"  # the log of ZooKeeper, beside the tables, where a run lacks evidence
COMMON: Mapping[str, str] = {"run_id": "str", "vt": "int", "seq": "int"}

TABLES: Mapping[str, Mapping[str, str]] = {
    # One row per request, written when it has ended: its sender waits no more, and the receiver has
    # responded. One that has not ended is as it was when the run was saved.
    "rpc": {
        "id": "int",
        "api": "str",
        "version": "int",
        "src": "int",
        "dst": "int",
        "src_incarnation": "str",
        "client_id": "str",  # of a Kafka client's request; null: of a node
        "connection": "int",  # of the client; null: of a node
        "principal": "str",  # whose it is, such as User:alice; null: the cluster's own
        "host": "str",  # of the principal, as ACLs name it
        "session_ends_ms": "int",  # of its connection, by the cluster's clock; null: never
        "send_seq": "int",  # event number when it was sent
        "handle_seq": "int",  # when the receiver handled it; null: it never arrived
        "resp_seq": "int",  # when the receiver sent the response; null: never
        "sent_ms": "int",
        "handled_ms": "int",
        "completed_ms": "int",
        "request": "json",  # Kafka's JSON form
        "response": "json",
        "error": "str",  # the top-level error's name, NONE if there is none
        # offsets of the records that handling it appended, also when the response never left
        "records_written": "ints",
        "high_watermark": "int",  # the receiver's committed end offset at the response
        "broker_epoch": "int",  # for broker-scoped requests: the epoch they carry
        "registered_epoch": "int",  # and the epoch registered when they were handled
        # what a client got in place of the response: who gave it (respond drop close …), what,
        # before or after the request took effect, whether it misleads, the response if any
        "answer": "json",
    },
    "partition_event": {
        "broker": "int",
        "incarnation": "str",
        "topic": "str",
        "topic_id": "str",
        "part": "int",
        # become_leader become_follower isr_pending isr_commit isr_revert hw append truncate stop
        # delete ack (of an acks=all produce); stop: also where the broker ends, with its last state
        "kind": "str",
        "leader_epoch": "int",
        "partition_epoch": "int",
        "isr": "ints",  # this and maximal_isr: leaders' rows only, as they are after the event
        "maximal_isr": "ints",
        "min_isr": "int",
        "hw_old": "int",
        "hw_new": "int",
        "leo": "int",
        "offset": "int",  # truncate: the new end; ack: the last offset acknowledged
        # {broker: [log end, leader epoch of that fetch, broker epoch]}: all that a leader has,
        # also in hw, ack and isr_pending rows, where the proofs of B2, F8 and A5 need it
        "follower_leos": "json",
        "error": "str",  # isr_revert, isr_pending: the name of the error of a rejected change
        # leader epoch and its first offset, in turn: append: of what was added; become_leader,
        # become_follower: of the whole log
        "epochs": "ints",
        "directory": "str",  # the id of the log directory with the replica
    },
    "publish": {
        "node": "int",
        "incarnation": "str",
        "offset": "int",  # the last one that the image holds
        "epoch": "int",
        "image_hash": "str",  # MetadataImage.digest()
        "manifest": "str",  # log, snapshot
        "in_tx": "bool",
    },
    "raft_event": {
        "node": "int",
        "incarnation": "str",
        # elected voted epoch append flush hw truncate resign, and beyond these:
        # begin: the log was taken up, at a start or from a snapshot; voters: what the node goes by.
        # hw: offset is the new high watermark (exclusive), written before anything that follows
        # from it: publishing, responding. flush, truncate, begin: offset is the end (exclusive) of
        # what is on disk, left, there; append: the last one of the batch
        "kind": "str",
        "epoch": "int",  # of the node; append: of the batch; truncate, begin: of the log's end
        "leader": "int",
        "offset": "int",
        "voted_for": "int",
        "crc": "int",  # append: the batch's
        # 101@<directory id>,102@…: as the records of an appended batch, or of the log that begins,
        # name them; hw of a leader: those of whom a majority is there; voters: the node's own view
        "voters": "str",
        "kraft_version": "int",  # like voters
    },
    # One row per refusal of a controller: of a request, or of one partition of it.
    "refusal": {
        "node": "int",
        "incarnation": "str",
        "rpc": "int",  # the id of the request; null: its response had left (KIP-497)
        "api": "str",
        "broker": "int",  # the sender, where the request names it
        "topic": "str",
        "part": "int",  # null: the whole request
        "error": "str",
        "reason": "str",  # minicluster.controller.errors.Reason
        "message": "str",  # as Kafka logs it
    },
    "replica_log": {
        "broker": "int",
        "incarnation": "str",
        "topic": "str",
        "topic_id": "str",
        "part": "int",
        "offset": "int",
        "leader_epoch": "int",
        "value_id": "str",
        "at": "str",  # end truncate crash
        "directory": "str",  # end: the id of the log directory with the replica
        "online": "bool",  # end: that directory works
    },
    "history": {
        "op_id": "int",
        "process": "str",
        "f": "str",  # send poll assign
        "type": "str",  # ok fail info
        "invoke_seq": "int",
        "complete_seq": "int",
        "topic": "str",
        "part": "int",
        "acks": "int",
        "offset": "int",
        "value": "str",
        "error": "str",
        "idempotent": "bool",  # send: by a producer whose records may be sent again
    },
    # Responses to clients: a row for each partition of a Fetch, of a ListOffsets for the latest
    # offset, and for each record that was acknowledged or read; for each partition that a member of
    # a group got, committed or fetched the offset of; and for the start and end of a producer's
    # transactions, without a partition (-1).
    "client_record": {
        "rpc": "int",  # the id of the request
        "client_id": "str",
        "connection": "int",
        "broker": "int",  # that responded
        "resp_seq": "int",  # when it did
        # send read fetch list own commit committed pending (a commit in a transaction) init end
        "f": "str",
        "topic": "str",  # null: the request named the id
        # of the topic that the broker had under the name when it responded; null: it had none
        "topic_id": "str",
        "part": "int",
        "acks": "int",  # send
        "offset": "int",  # send, read, commit, pending, committed (-1: none)
        "leader_epoch": "int",  # read: of the batch; list
        "value": "str",  # send, read
        "high_watermark": "int",  # read, fetch, list: as the response has it
        "send_seq": "int",  # when the request was sent
        "received_seq": "int",  # when the client got the response; null: never, or not yet
        "fetch_offset": "int",  # read, fetch: where the request began
        "isolation": "int",  # read, fetch: 1 is read_committed
        "last_stable_offset": "int",  # read, fetch: as the response has it
        "batch_offset": "int",  # read: the base offset of the record's batch
        "visible": "bool",  # read: no marker, and of no transaction that the response calls aborted
        "producer_id": "int",  # send, read, pending, init, end
        "producer_epoch": "int",  # send, read, pending, init, end
        "sequence": "int",  # read: of a record whose producer has an id
        "group_id": "str",  # own, commit, committed, pending
        "member_id": "str",  # own, commit
        "instance_id": "str",  # own: group.instance.id of a static member, where the request has it
        "generation": "int",  # own, commit: of a classic group, or the member's epoch
        "stable": "bool",  # committed: no transaction of a producer held the offset open
        "transactional_id": "str",  # init, end
        "committed": "bool",  # end
        # The client had been told before what no node said: what it does since shows nothing.
        "misled": "bool",
    },
    # What group coordinators delete, as they append it: offsets that are expired or deleted, and
    # groups.
    "group_event": {
        "kind": "str",  # forget (an offset) end (a group)
        "group_id": "str",
        "topic": "str",  # null: the group
        "part": "int",  # -1: the group
    },
    # The batches of producers in each broker's logs at the end of the run.
    "log_batch": {
        "broker": "int",
        "topic": "str",
        "topic_id": "str",
        "part": "int",
        "base_offset": "int",
        "last_offset": "int",
        "producer_id": "int",
        "producer_epoch": "int",
        "transactional": "bool",
        "marker": "str",  # commit abort; null: data
        "coordinator_epoch": "int",  # of a marker
    },
    # The decisions in __transaction_state at the end of the run, one row for each partition of each
    # transaction.
    "transaction_decision": {
        "broker": "int",  # whose log has it
        "offset": "int",
        "transactional_id": "str",
        "producer_id": "int",
        "producer_epoch": "int",
        "state": "str",  # PrepareCommit PrepareAbort
        "completed": "bool",  # a later record of the same transactional id shows it
        "topic": "str",
        "part": "int",
    },
    # What users' programs inside the simulation have logged, the latest of it; no part of the hash.
    "program_log": {
        "node": "int",  # the program's in the network
        "program": "str",
        "process": "int",  # of the program, from 1
        "level": "str",
        "logger": "str",
        "text": "str",
    },
    "fault": {
        "step": "int",
        "action": "str",
        "targets": "json",
        "phase": "str",  # start stop hit note
        "detail": "str",
        "directory": "str",  # fail_dir: the id of the log directory that is offline from here on
    },
}

# Columns that every row has; a row without them was not written by a run.
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "rpc": ("vt", "seq", "id", "api", "version", "src", "dst", "send_seq", "request"),
    "partition_event": ("vt", "seq", "broker", "topic", "topic_id", "part", "kind"),
    "publish": ("vt", "seq", "node", "offset"),
    "raft_event": ("vt", "seq", "node", "kind"),
    "refusal": ("vt", "seq", "node", "error", "reason"),
    "replica_log": ("vt", "seq", "broker", "topic", "part", "offset", "at"),
    "history": ("vt", "seq", "op_id", "f", "type"),
    "client_record": ("vt", "seq", "rpc", "client_id", "broker", "f", "part"),
    "group_event": ("vt", "seq", "kind", "group_id", "part"),
    "log_batch": ("vt", "seq", "broker", "topic", "topic_id", "part", "base_offset"),
    "transaction_decision": ("vt", "seq", "broker", "offset", "state", "topic", "part"),
    "program_log": ("vt", "seq", "node", "program", "text"),
    "fault": ("vt", "seq", "action", "phase"),
}

# Tables that runs of earlier versions do not have; without rows no rule has cases in them.
OPTIONAL_TABLES = frozenset(
    {
        "refusal", "client_record", "group_event", "log_batch", "transaction_decision",
        "program_log",
    }
)  # fmt: skip

# Columns that runs of earlier versions do not have: null there.
OPTIONAL_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "rpc": ("client_id", "connection", "answer"),
    "partition_event": ("epochs", "directory"),
    "fault": ("directory",),
    "replica_log": ("directory", "online"),
    "client_record": (
        "send_seq",
        "received_seq",
        "fetch_offset",
        "isolation",
        "last_stable_offset",
        "batch_offset",
        "visible",
        "producer_id",
        "producer_epoch",
        "sequence",
        "group_id",
        "member_id",
        "instance_id",
        "generation",
        "stable",
        "transactional_id",
        "committed",
        "misled",
    ),
}

# Kafka's ids and epochs of 32 bits, whatever table they are in.
INT32_COLUMNS = frozenset(
    (
        "acks",
        "broker",
        "dst",
        "isr",
        "kraft_version",
        "leader",
        "leader_epoch",
        "maximal_isr",
        "min_isr",
        "node",
        "part",
        "partition_epoch",
        "src",
        "version",
        "voted_for",
    )
)


EXIT = "exit"  # a row of ``fault`` that no step asks for: a process has ended by itself


def is_halt(fault: Mapping[str, Any]) -> bool:
    """True for the row of a process that had to end, as without its last log directory."""
    return fault["action"] == EXIT and bool(fault["detail"])


def shown_fault(action: str, targets: str, detail: str | None) -> str:
    """A row of ``fault`` in one line for a person.

    The detail of an answer repeats the verb of its action (``Produce drop after it takes effect``
    of ``drop_responses``), which is said once. The row keeps both: the trace's hash has them.
    """
    verb = action.partition("_")[0]
    words = (detail or "").split(" ")
    rest = [word for word in words if word.removesuffix(":") not in (action, verb)]
    return " ".join(filter(None, [action, targets, *rest]))


def own_value(topic: str, partition: int, number: int) -> str:
    """The value that the cluster's own client gives its record of a number: no other one has it."""
    return f"{topic}-{partition}/{number}"


def row(table: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """One row with every column of its table, in order.

    Errors:  KeyError for a table or column that is not declared: a programming error.
    """
    blank = _BLANK_ROWS[table]
    row = {**blank, **values}
    if len(row) > len(blank):
        unknown = ", ".join(sorted(values.keys() - blank.keys()))
        raise KeyError(f"trace table {table} has no column {unknown}")
    return row


_BLANK_ROWS: dict[str, dict[str, Any]] = {
    table: dict.fromkeys(columns) for table, columns in TABLES.items()
}
