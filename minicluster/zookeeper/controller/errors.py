"""Failures that end an event, or one step of it; errors with the texts of this controller."""

from __future__ import annotations

from minicluster.controller.errors import ApiError
from minicluster.protocol import ErrorCode
from minicluster.protocol.errors import ProtocolError
from minicluster.zookeeper.server.operations import Code


class ControllerMoved(Exception):
    """The check of the controller epoch failed: another broker is the controller."""


class ZooKeeperFailure(Exception):
    """An operation failed with a code that its caller does not expect."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.name)
        self.code = code


class StateChangeFailed(Exception):
    """A partition or a replica cannot change to the requested state."""


class IllegalState(Exception):
    """The controller holds no such thing, or another one than a znode has."""


FAILURES = (ZooKeeperFailure, StateChangeFailed, IllegalState, ProtocolError)
"""Failures that end one event, or one step of it, and no other.

Source:  kafka.controller.KafkaController.process: any Throwable but ControllerMovedException.
"""

NO_PARTITION = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
"""The error of a partition that no znode has.

Source:  KafkaController.processReplicaLeaderElection, processApiPartitionReassignment.
"""
