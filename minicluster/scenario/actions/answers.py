"""The actions on what clients are answered: another response, or none.

They act on requests of clients, Kafka's and the cluster's own, as a node would: once, ``times``
times, or all the time that they last. Requests between nodes are disturbed by their links.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Literal

from minicluster.scenario.actions.arguments import (
    Apis,
    Errors,
    Function,
)
from minicluster.scenario.actions.clients_requests import OfClients
from minicluster.scenario.actions.nodes import Connections
from minicluster.values import dataclass

When = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Respond(OfClients):
    """Answer clients' requests with an error, before or after they have taken effect.

    Arguments:  before: the node never handles the request. after: it does, and the client gets the
                error in place of its response: a Produce that was written and answers
                REQUEST_TIMED_OUT. Of several errors each takes its turn, and once each without
                ``times`` and ``lasting``. With a topic, a topic id or partitions, the error is that
                of these alone, where the version of the API has errors for each; the node handles
                the others. Several answers for one request: the one that was given first. -> the
                answer, with its ``hits``.
    Source:  the getErrorResponse methods of Kafka's requests.
    """

    api: Apis
    error: Errors
    _: KW_ONLY
    when: When = "before"


@dataclass(frozen=True, slots=True)
class DropResponses(OfClients):
    """Swallow responses to clients (when after) or their requests (before); connections stay.

    Arguments:  as in ``Respond``.
    """

    api: Apis
    _: KW_ONLY
    when: When = "after"


@dataclass(frozen=True, slots=True)
class CloseConnections(OfClients):
    """Close the connections of clients' requests, before or after they have taken effect.

    Arguments:  as in ``Respond``. connections: with FIN, or with reset by RST.
    """

    api: Apis
    _: KW_ONLY
    when: When = "after"
    connections: Connections = "close"


@dataclass(frozen=True, slots=True)
class Intercept(OfClients):
    """Let a function of the test see clients' requests, and answer or change them.

    Arguments:  function(request) -> None: the request reaches its node. Another request of the API:
                that one reaches it. A response, or one of "drop", "close" and "reset": the node
                never gets it. To change the response, the function is a generator: it yields the
                request for the node (or None for the one that came), is given the node's response,
                and returns what the client gets, or None for that response. ``times``: how many
                requests it sees, or all until ``lift`` or ``heal``. It must not wait. A file cannot
                repeat it, and the run says so.
    Errors:  what the function raises leaves through the test's next wait.
    """

    api: Apis
    function: Function
