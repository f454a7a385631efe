"""Errors for the caller of the quorum machine; a peer gets an error code in a response instead."""

from __future__ import annotations

from minicluster.errors import MiniclusterError


class QuorumError(MiniclusterError):
    """The root of what the quorum machine raises on purpose."""


class NotLeader(QuorumError):
    """The node does not lead (any more) in the epoch that the caller named."""


class IllegalArgument(QuorumError):
    """The caller named something that no state allows, such as an epoch of the future."""


class RecordBatchTooLarge(IllegalArgument):
    """The records of one append are more than a batch holds."""


class InconsistentState(QuorumError):
    """A fault of Kafka that the rules turn on (``Rules.as_shipped``) brings the node down."""
