"""An API, as all nodes know it: its key, its versions by release, the shape of its error.

::

    API = api(
        DescribeGroupsRequest,
        DescribeGroupsResponse,
        kafka_3_9="0-5",
        kafka_4_3="0-6",
        error=described("groups", "group_id", "groups"),
    )

ends the module of its messages, which declares it thereby. It says nothing about who serves it:
several nodes may. A node has one table from requests to handlers, and what it advertises, the
routes to it and the page of coverage are read from that table.

Source:  ApiKeys, the JSON of Kafka's messages (validVersions).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from minicluster.protocol.codec import check_version
from minicluster.protocol.error_shape import ErrorShape
from minicluster.protocol.schema import Message
from minicluster.protocol.versions import parse_versions
from minicluster.rules import Rules
from minicluster.values import Value

PRODUCE = 0
CONTROLLED_SHUTDOWN = 7
API_VERSIONS = 18
_PRODUCE_ENABLED_FROM = 3


class Api(Value):
    """One API: a request and its response.

    Shapes:  kafka_3_9, kafka_4_3: the versions that a node of the release advertises where it
             serves the API; empty where the release does not have it. forwardable: a broker may
             forward it to the controller, in an Envelope (KIP-590).
    """

    key: int
    name: str
    request: type[Message]
    response: type[Message]
    kafka_3_9: range
    kafka_4_3: range
    error: ErrorShape
    forwardable: bool

    def versions(self, rules: Rules) -> range:
        """The versions that a node of the release advertises where it serves the API."""
        return self.kafka_4_3 if rules.drops_old_request_versions else self.kafka_3_9

    def request_header_version(self, version: int) -> int:
        """The version of the header in front of a request.

        Errors:  UnsupportedVersion if the request has no such version.
        """
        check_version(self.request, version)
        if self.key == CONTROLLED_SHUTDOWN and version == 0:
            return 0
        return 2 if version in self.request.flexible_versions else 1

    def response_header_version(self, version: int) -> int:
        """The version of the header in front of a response.

        That of ApiVersions is always 0 (KIP-511): a client that asks a broker for its versions does
        not know them yet, and has to read the response of an older one too.

        Errors:  UnsupportedVersion if the response has no such version.
        """
        check_version(self.response, version)
        return int(self.key != API_VERSIONS and version in self.response.flexible_versions)


_DECLARED: dict[type[Message], Api] = {}


def api(
    request: type[Message],
    response: type[Message],
    *,
    kafka_3_9: str,
    kafka_4_3: str,
    error: ErrorShape | None = None,
    forwardable: bool = False,
) -> Api:
    """Declare an API; without a shape, its error stands at the top of its response."""
    declared = Api(
        request.api_key,
        request.__name__.removesuffix("Request"),
        request,
        response,
        parse_versions(kafka_3_9),
        parse_versions(kafka_4_3),
        error or ErrorShape(),
        forwardable,
    )
    _DECLARED[request] = declared
    return declared


def declared_apis() -> list[Api]:
    """The APIs whose messages are imported, by key; ``api_keys.APIS`` has all of them."""
    return sorted(_DECLARED.values(), key=lambda declared: declared.key)


def api_of(request: type[Message]) -> Api | None:
    """The API of a request; None for what only the text of a KIP has, or another name."""
    return _DECLARED.get(request)


def advertised_versions(rules: Rules, requests: Iterable[type[Message]]) -> Mapping[int, range]:
    """The versions of these requests that a node of the release advertises, by API key.

    Source:  ApiVersionsResponse.filterApis.
    """
    served = (_DECLARED[request] for request in requests if request in _DECLARED)
    by_key = {each.key: each.versions(rules) for each in sorted(served, key=lambda a: a.key)}
    return {key: versions for key, versions in by_key.items() if versions}


def enabled_versions(rules: Rules, advertised: Mapping[int, range]) -> Mapping[int, range]:
    """The versions that are handled, of those that a node advertises.

    Kafka 4.x advertises Produce from 0 on, though it has no version below 3: old librdkafka takes
    a broker without version 0 for one without compression and transactions.

    Source:  ApiKeys.isVersionEnabled, PRODUCE_API_VERSIONS_RESPONSE_MIN_VERSION (KAFKA-18659).
    """
    if not rules.drops_old_request_versions or PRODUCE not in advertised:
        return advertised
    produce = advertised[PRODUCE]
    return {**advertised, PRODUCE: range(_PRODUCE_ENABLED_FROM, produce.stop)}


def has_api(rules: Rules, request: type) -> bool:
    """The nodes of a release handle a request."""
    declared = api_of(request)
    return declared is not None and bool(declared.versions(rules))


def highest_version(rules: Rules, request: Any) -> int:
    """The version of a request between brokers and controllers of one release."""
    declared = api_of(request if isinstance(request, type) else type(request))
    versions = range(0) if declared is None else declared.versions(rules)
    return int(versions[-1] if versions else request.latest_version)
