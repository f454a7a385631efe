"""The tables of a ZooKeeper log: one row per state, assignment, topic, broker, controller, notice.

Each row carries what it is judged under: the value before it, the controller epoch, the brokers
that are alive. Offsets are zxids.
"""

from __future__ import annotations

from collections.abc import Mapping

_PLACE = {"run": "text", "offset": "long", "pos": "long", "ms": "long", "kind": "text"}
_PARTITION = {"topic": "text", "part": "int"}

OPERATIONS = "znode_log"

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "znode_states": {
        **_PLACE,  # kind: Write, Delete
        "broker": "int",  # whose session wrote it
        **_PARTITION,
        "leader": "int",
        "leader_epoch": "int",
        "controller_epoch": "int",
        "isr": "ints",
        "rec": "int",
        "version": "int",  # of the znode: the partition epoch
        "p_leader": "int",  # p_: before it; null: the znode is new
        "p_leader_epoch": "int",
        "p_isr": "ints",
        "p_rec": "int",
        "replicas": "ints",  # of the topic's znode
        "live": "ints",  # brokers that are registered
        "noticed": "ints",  # of these, the ones that it must have read, with all their directories
        "dead": "ints",  # members that are not registered, as the controller must have read
        "epoch": "int",  # of the newest controller
        "of_controller": "flag",  # the newest controller's session wrote it
        "of_leader": "flag",  # single, below IBP 2.7-IV2
        "recovery_supported": "flag",
        "members_checked": "flag",  # the release rejects members that are not alive
    },
    "znode_assignments": {
        **_PLACE,  # kind: Write, Delete
        **_PARTITION,
        "topic_id": "text",
        "replicas": "ints",
        "adding": "ints",
        "removing": "ints",
        "p_adding": "ints",
        "isr": "ints",  # of the partition's state
    },
    "znode_topics": {
        **_PLACE,  # kind: Write, Delete
        "topic": "text",
        "topic_id": "text",
        "p_topic_id": "text",
        "partitions": "int",
        "is_new": "flag",
    },
    "znode_brokers": {
        **_PLACE,  # kind: Register, Unregister
        "broker": "int",
        "epoch": "long",  # czxid
    },
    "znode_controllers": {
        **_PLACE,  # kind: Controller, Epoch
        "broker": "int",
        "epoch": "int",
        "p_epoch": "int",
        "together": "flag",  # /controller and its epoch are of one transaction
    },
    "znode_notices": {
        **_PLACE,  # of the leader's write; kind: the end of the wait
        **_PARTITION,
        "until_ms": "long",
    },
    OPERATIONS: {
        **_PLACE,  # kind: create, set, delete, check, error, create_session, close_session
        "session": "text",
        "broker": "int",
        "path": "text",
        "version": "int",
        "ephemeral": "flag",
        "data": "text",
        "multi_place": "int",
        "multi_count": "int",
        "error": "text",
    },
}
