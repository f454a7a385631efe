"""The control socket under peers that mean harm: each costs its own connection, and no other."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from minicluster.actors.serve.control import CONNECTIONS_MAX, Command, ControlServer
from minicluster.actors.serve.control_client import NoCluster, perform_at
from minicluster.actors.serve.control_lines import Response, read_response, request_line
from minicluster.errors import UserError

LIMIT_S = 60.0


class Cluster:
    """Commands that were submitted; each gets a response, unless it is to wait."""

    def __init__(self) -> None:
        self.waiting: list[Command] = []
        self.has_waiting = threading.Event()
        self.texts: list[str] = []

    def submit(self, command: Command) -> None:
        self.texts.append(command.step.text)
        if command.step.text == "heal":
            self.waiting.append(command)
            self.has_waiting.set()
        else:
            command.respond(Response(text=command.step.text, step=1, at_ms=5))


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def control(cluster: Cluster) -> Iterator[ControlServer]:
    served = ControlServer(cluster.submit, name="shop", line_within_s=LIMIT_S)
    yield served
    served.close()


@pytest.fixture
def hasty(cluster: Cluster) -> Iterator[ControlServer]:
    """A server that gives its peers little time."""
    served = ControlServer(cluster.submit, name="shop", line_within_s=0.5)
    yield served
    served.close()


def connect(control: ControlServer) -> socket.socket:
    host, _, port = control.address.rpartition(":")
    return socket.create_connection((host, int(port)), LIMIT_S)


def received(connection: socket.socket) -> bytes:
    """Everything until the end of the connection, which comes."""
    found = b""
    try:
        while data := connection.recv(65_536):
            found += data
    except ConnectionResetError:
        pass
    return found


def test_a_step_is_performed_and_its_end_is_one_line(control: ControlServer) -> None:
    response = perform_at(control.address, control.token, "kill broker(1)")
    assert response == Response(text="kill node=broker(1)", cluster="shop", step=1, at_ms=5)


def test_another_token_performs_nothing(control: ControlServer, cluster: Cluster) -> None:
    response = perform_at(control.address, control.token[:-1] + "?", "kill broker(1)")
    assert response.exit_code == 64 and "token" in response.text
    assert cluster.texts == []


@pytest.mark.parametrize(
    "sent",
    [b"\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x00" * 200_000, b"x" * 200_000],
    ids=["empty", "http", "zeros", "endless"],
)
def test_what_is_no_request_ends_its_connection_and_no_other(
    control: ControlServer, cluster: Cluster, sent: bytes
) -> None:
    with connect(control) as hostile:
        try:
            hostile.sendall(sent)
            response = received(hostile)
        except (ConnectionResetError, BrokenPipeError):
            response = b""  # it was closed while more was still coming
        if response:
            assert read_response(response).exit_code == 64
    assert cluster.texts == []
    assert perform_at(control.address, control.token, "kill broker(1)").exit_code == 0


@pytest.mark.parametrize("sent", [b"", b'{"half": '], ids=["silent", "half"])
def test_a_peer_that_sends_no_whole_line_is_closed_in_time(
    hasty: ControlServer, cluster: Cluster, sent: bytes
) -> None:
    with connect(hasty) as silent:
        silent.sendall(sent)
        assert read_response(received(silent)).exit_code == 64
    assert cluster.texts == []


def test_a_byte_now_and_then_does_not_keep_a_connection(hasty: ControlServer) -> None:
    began_s = time.monotonic()
    with connect(hasty) as slow:
        slow.settimeout(0.05)
        while time.monotonic() - began_s < LIMIT_S:
            try:
                slow.sendall(b" ")
                if not slow.recv(4096):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
    assert time.monotonic() - began_s < LIMIT_S


def test_connections_are_bounded(control: ControlServer) -> None:
    idle = [connect(control) for _ in range(CONNECTIONS_MAX)]
    with connect(control) as one_more:
        assert received(one_more) == b""
    for connection in idle:
        connection.close()
    deadline_s = time.monotonic() + LIMIT_S
    while True:
        try:
            assert perform_at(control.address, control.token, "kill broker(1)").exit_code == 0
            break
        except NoCluster:
            assert time.monotonic() < deadline_s


def test_a_step_that_takes_long_shows_that_the_cluster_is_alive(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minicluster.actors.serve.control.ALIVE_EVERY_S", 0.05)
    control = ControlServer(cluster.submit, name="shop")
    with connect(control) as waiting:
        waiting.sendall(request_line(control.token, "heal"))
        assert waiting.recv(1) == b"\n"
        cluster.waiting[0].respond(Response(text="healed"))
        assert read_response(received(waiting).lstrip(b"\n")).text == "healed"
    control.close()


def test_the_end_of_the_cluster_ends_a_step_that_waits(cluster: Cluster) -> None:
    before = set(threading.enumerate())
    control = ControlServer(cluster.submit, name="shop")
    with connect(control) as waiting:
        waiting.sendall(request_line(control.token, "heal"))
        assert cluster.has_waiting.wait(LIMIT_S)
        cluster.waiting[0].respond(Response(text="ended", exit_code=2))
        control.close()
        assert read_response(received(waiting)).text == "ended"
    assert set(threading.enumerate()) <= before


def test_a_peer_that_has_left_harms_nothing(control: ControlServer, cluster: Cluster) -> None:
    with connect(control) as left:
        left.sendall(request_line(control.token, "heal"))
        assert cluster.has_waiting.wait(LIMIT_S)
    cluster.waiting[0].respond(Response(text="healed"))
    assert perform_at(control.address, control.token, "kill broker(1)").exit_code == 0


def test_where_nothing_listens_is_one_line() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # nobody else gets the port, and nobody listens
        port = silent.getsockname()[1]
        with pytest.raises(NoCluster, match="no cluster responds: Connection refused"):
            perform_at(f"127.0.0.1:{port}", "token", "heal")
    for address in ("nowhere", "host:", "host:port", "host:70000"):
        with pytest.raises(UserError, match="is not an address"):
            perform_at(address, "token", "heal")


def test_a_server_of_another_protocol_is_one_line() -> None:
    listening = socket.create_server(("127.0.0.1", 0))

    def respond() -> None:
        accepted, _ = listening.accept()
        with accepted:
            accepted.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            accepted.recv(65_536)

    thread = threading.Thread(target=respond, daemon=True)
    thread.start()
    with pytest.raises(UserError, match="one line of JSON"):
        perform_at(f"127.0.0.1:{listening.getsockname()[1]}", "token", "heal")
    thread.join(LIMIT_S)
    listening.close()
