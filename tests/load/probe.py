"""A client that asks for little, one API after the other: ``probe SERVERS SECONDS PROTOCOL``.

The result is one line of JSON: milliseconds of each response, by API.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections import defaultdict
from typing import Any

from minicluster.protocol import messages as m
from tests.listeners.raw_client import frame, read_response

PAUSE_S = 0.02
LIMIT_S = 60.0


def main() -> int:
    servers, seconds, protocol = sys.argv[1:]
    print(json.dumps(run(servers, int(seconds), protocol)))
    return 0


def run(servers: str, seconds: int, protocol: str) -> dict[str, list[float]]:
    waits_ms: defaultdict[str, list[float]] = defaultdict(list)
    connections = []
    for address in servers.split(","):
        host, port = address.split(":")
        connection = socket.create_connection((host, int(port)), LIMIT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connections.append(connection)
    requests = _requests(protocol)
    began_s = time.monotonic()
    while time.monotonic() - began_s < seconds:
        for connection in connections:
            for request, version in requests:
                at_s = time.perf_counter()
                connection.sendall(frame(request, version, 1, "probe"))
                size = int.from_bytes(_bytes(connection, 4), "big")
                data = _bytes(connection, size)
                waits_ms[type(request).__name__].append((time.perf_counter() - at_s) * 1000)
                read_response(request, version, data)
                time.sleep(PAUSE_S)
    return dict(waits_ms)


def _requests(protocol: str) -> list[tuple[Any, int]]:
    topic = m.ListOffsetsRequest.ListOffsetsTopic(
        name="orders",
        partitions=(m.ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1),),
    )
    return [
        (m.ApiVersionsRequest(client_software_name="p", client_software_version="1"), 3),
        (m.MetadataRequest(topics=None), 9),
        (m.FindCoordinatorRequest(key="load", key_type=0), 3),
        (m.DescribeGroupsRequest(groups=("load",)), 5),
        (m.ListOffsetsRequest(replica_id=-1, topics=(topic,)), 7),
        (m.OffsetFetchRequest(group_id="load", topics=None), 7),
        (m.ListGroupsRequest(), 4),
    ]


def _bytes(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise EOFError("the broker closed the connection of the probe")
        data += more
    return data


if __name__ == "__main__":
    sys.exit(main())
