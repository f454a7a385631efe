"""Sending one step to a serving cluster."""

from __future__ import annotations

import socket

from minicluster.actors.serve.control import ALIVE_EVERY_S
from minicluster.actors.serve.control_lines import (
    RESPONSE_BYTES_MAX,
    Response,
    read_response,
    request_line,
)
from minicluster.errors import UserError

CONNECT_WITHIN_S = 5.0
SILENT_MAX_S = 6 * ALIVE_EVERY_S


class NoCluster(UserError):
    """Nothing responds at the address, or it ended meanwhile."""

    exit_code = 69


def perform_at(address: str, token: str, text: str) -> Response:
    """Let the cluster at a control address perform a step, and wait for its end.

    Errors:  NoCluster where nothing listens, and where it falls silent; UserError for an address
             that is none.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise UserError(f"{address}: is not an address; write one such as 127.0.0.1:9092")
    line = request_line(token, text)
    try:
        with socket.create_connection((host.strip("[]"), int(port)), CONNECT_WITHIN_S) as sent:
            sent.settimeout(SILENT_MAX_S)
            sent.sendall(line)
            return read_response(_first_line(sent, address))
    except TimeoutError:
        raise NoCluster(f"{address}: silent for too long; look at the cluster") from None
    except OSError as error:
        raise NoCluster(f"{address}: no cluster responds: {error.strerror or error}") from None


def _first_line(sent: socket.socket, address: str) -> bytes:
    """The first line that is not empty: empty ones come while a step takes its time."""
    received = b""
    while b"\n" not in received:
        if len(received) > RESPONSE_BYTES_MAX:
            raise UserError(f"{address}: what listens there is no minicluster")
        data = sent.recv(4096)
        if not data:
            raise NoCluster(f"{address}: the cluster ended before the step did")
        received = (received + data).lstrip(b"\n")
    return received.partition(b"\n")[0]
