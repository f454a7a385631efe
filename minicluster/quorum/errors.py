"""Errors for the caller of the quorum machine, and the reasons why a peer is rejected.

A peer gets an error code in a response; where several reasons share a code, or a rejection has no
code, the reason is an effect beside it.
"""

from __future__ import annotations

from enum import Enum

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


class VoteRejection(Enum):
    """The reason not to grant a vote, as Kafka logs it ("Rejecting Vote request … since …")."""

    LOG_BEHIND = "the candidate's log is behind"
    VOTED_FOR_ANOTHER = "this node has voted for another candidate"
    LEADER_KNOWN = "the epoch has a leader"
    FETCHED_FROM_LEADER = "the leader has served a fetch"
    IS_LEADER = "this node leads the epoch"
    IS_CANDIDATE = "this node is a candidate of the epoch"
    IS_RESIGNED = "this node has led the epoch"


class InvalidRequest(Enum):
    """The reason of an INVALID_REQUEST, in the order in which a request is looked at."""

    OTHER_PARTITION = "it does not name the metadata partition, and only that"
    IMPOSSIBLE_LOG_END = "the candidate's log end is not below its epoch"
    IMPOSSIBLE_FETCH = "the offset, epoch or wait of the fetch is impossible"
    SENDER_WITHOUT_ID = "the sender has no id"
    VOTE_OF_OWN_ID = "a candidate has this node's own id"
    SECOND_LEADER = "the epoch has another leader"
    FETCH_OF_OWN_ID = "the leader fetches from itself"
    VOTER_WITHOUT_DIRECTORY = "a voter is named by its id and directory id"
    LISTENER_MISSING = "the voter has no endpoint of the quorum's listener"
    IMPOSSIBLE_VERSIONS = "the range of supported versions is empty or negative"
    KRAFT_VERSION_UNSUPPORTED = "the voter does not support the kraft.version"
    UPDATE_OF_OWN_ID = "the leader updates itself"
