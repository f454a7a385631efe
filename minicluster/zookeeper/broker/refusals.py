"""Requests that a broker on ZooKeeper rejects: it forwards nothing to the controller.

A client looks for the controller itself. Configs are altered by whichever broker gets the request.

Source:  kafka.server.KafkaApis, MetadataSupport.ZkSupport (release 3.9 without KIP-866).
"""

from __future__ import annotations

from typing import Any

from minicluster.broker.kafka_apis import APIS, FORWARDED
from minicluster.protocol import ErrorCode
from minicluster.protocol.error_responses.error_response import error_response
from minicluster.protocol.messages import (
    AlterConfigsRequest,
    DescribeTopicPartitionsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from minicluster.zookeeper.broker.admin_requests import ADMIN_REQUESTS
from minicluster.zookeeper.controller.requests import CONTROLLER_REQUESTS

BY_ANY_BROKER = (AlterConfigsRequest, IncrementalAlterConfigsRequest)
OF_KRAFT_IMAGES = (DescribeTopicPartitionsRequest, ListConfigResourcesRequest)

UNSERVED: frozenset[int] = frozenset(
    request.api_key
    for request in APIS
    if request in OF_KRAFT_IMAGES
    or (request in FORWARDED and request not in (*ADMIN_REQUESTS, *CONTROLLER_REQUESTS))
)
"""The API keys of the requests that are rejected whatever the broker is."""


def refusal_of(request: Any, version: int, *, is_controller: bool) -> Any | None:
    """The response that rejects a request, None for one that is served.

    Errors:  NOT_CONTROLLER where the controller would serve it; UNSUPPORTED_VERSION for what only
             a KRaft controller has, or a broker with its image.
    """
    if isinstance(request, OF_KRAFT_IMAGES):
        return error_response(request, ErrorCode.UNSUPPORTED_VERSION, version=version)
    if type(request) not in FORWARDED or isinstance(request, BY_ANY_BROKER):
        return None
    if not isinstance(request, ADMIN_REQUESTS):
        return error_response(request, ErrorCode.UNSUPPORTED_VERSION, version=version)
    if not is_controller:
        return error_response(request, ErrorCode.NOT_CONTROLLER, version=version)
    return None
