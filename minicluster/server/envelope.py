"""Envelope (58): a client's request that a broker forwards to the controller (KIP-590).

Versions:  0.
Source:    EnvelopeUtils.handleEnvelopeRequest, RequestChannel.Request.buildResponseSend.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from minicluster.channel.controller_channel import is_from_inactive_controller
from minicluster.protocol import ErrorCode, ProtocolError, decode, encode
from minicluster.protocol import messages as m
from minicluster.protocol.api_keys import APIS
from minicluster.protocol.codec import decode_prefix
from minicluster.security.principals import KafkaPrincipal, Requester, java_host
from minicluster.values import Value

_ADDRESS_SIZES = (4, 16)  # of IPv4, IPv6
_KEY_AND_VERSION = 4


class ForwardedRequest(Value):
    """The request inside an envelope."""

    request: Any
    version: int
    correlation_id: int
    user: str
    client_id: str
    requester: Requester


def open_envelope(
    envelope: m.EnvelopeRequest, security_protocol: str = "PLAINTEXT"
) -> ForwardedRequest | ErrorCode:
    """The request inside an envelope, or the error of the envelope.

    Shapes:  security_protocol: of the envelope's own connection; an envelope has no client's.

    Errors:  PRINCIPAL_DESERIALIZATION_FAILURE for a principal that is none; INVALID_REQUEST for a
             client address that is none, or an API that is not forwarded; UNSUPPORTED_VERSION
             for a request that cannot be read.
    """
    principal = _principal(envelope.request_principal or b"")
    if principal is None:
        return ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
    if len(envelope.client_host_address) not in _ADDRESS_SIZES:
        return ErrorCode.INVALID_REQUEST
    data = envelope.request_data
    key, version = (int.from_bytes(data[at : at + 2], "big", signed=True) for at in (0, 2))
    api = APIS.get(key)
    if len(data) < _KEY_AND_VERSION or api is None:
        return ErrorCode.UNSUPPORTED_VERSION
    if not api.forwardable:
        return ErrorCode.INVALID_REQUEST
    try:
        header, end = decode_prefix(m.RequestHeader, data, api.request_header_version(version))
        request = decode(api.request, data[end:], version)
    except ProtocolError:
        return ErrorCode.UNSUPPORTED_VERSION
    client_id = header.client_id or ""
    requester = Requester(
        KafkaPrincipal(principal.type, principal.name),
        java_host(str(ipaddress.ip_address(envelope.client_host_address))),
        principal.token_authenticated,
        security_protocol,
    )
    return ForwardedRequest(
        request, version, header.correlation_id, principal.name, client_id, requester
    )


def close_envelope(forwarded: ForwardedRequest, response: Any) -> m.EnvelopeResponse:
    """The envelope of a response; NOT_CONTROLLER is the envelope's own error."""
    if _is_from_inactive_controller(response):
        return m.EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    version = forwarded.version
    api = APIS[forwarded.request.api_key]
    header = m.ResponseHeader(correlation_id=forwarded.correlation_id)
    data = encode(header, api.response_header_version(version)) + encode(response, version)
    return m.EnvelopeResponse(response_data=data)


def _principal(data: bytes) -> m.DefaultPrincipalData | None:
    """The principal that Kafka's own builder has serialized behind a version; None for no such."""
    version = int.from_bytes(data[:2], "big", signed=True)
    try:
        return decode(m.DefaultPrincipalData, data[2:], version)
    except ProtocolError:
        return None


def _is_from_inactive_controller(response: Any) -> bool:
    if not isinstance(response, m.DescribeQuorumResponse):
        return is_from_inactive_controller(response)
    return any(
        partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        for topic in response.topics
        for partition in topic.partitions
    )
