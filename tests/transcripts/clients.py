"""Plays a recording of clients of one Apache Kafka node against a cluster of one broker.

The recorded node is broker and controller; here broker 1 has controller 101 beside it. Where a
response names the controller's node (DescribeQuorum), 101 replaces 1. A step is played at its
recorded time of the simulated clock, and its request goes through bytes both ways. Each connection
has only one request in progress at a time, as in Kafka's socket server.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from minicluster.actors.cluster.client import CLIENT_ID
from minicluster.actors.cluster.mini_cluster import MiniCluster, inside
from minicluster.actors.exchange import Sender
from minicluster.actors.links import Condition
from minicluster.actors.network import Completion, Network
from minicluster.actors.nodes.config import OWN
from minicluster.actors.runtime.runtime import ClusterActor
from minicluster.broker.kafka_apis import supported_versions
from minicluster.configs.definitions import broker_configs
from minicluster.errors import UserError
from minicluster.protocol import messages as m
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.json_form import from_json, to_json
from minicluster.replica.machine import RETENTION_TIMER
from minicluster.rules import Rules
from minicluster.scenario.scenario import FIRST_CONTROLLER
from minicluster.security.authorizer import SUPER_USERS
from minicluster.security.principals import ANONYMOUS, USER, KafkaPrincipal, Requester
from minicluster.security.scram import (
    MIN_ITERATIONS,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    salted_password,
)
from minicluster.values import replace
from tests.transcripts.clients_compare import Comparison
from tests.transcripts.clients_forms import Names, with_batches, with_bytes
from tests.transcripts.clients_leaders import RecordedLeaders
from tests.transcripts.clients_retention import first_retention_ms
from tests.transcripts.clients_topics import RecordedTopics
from tests.transcripts.report import (
    AGREE,
    DIFFER,
    NOT_BUILT,
    OTHER_MESSAGE,
    NotBuilt,
    Outcome,
    read_lines,
    require,
)

BROKER = 1
LOOPBACK = "127.0.0.1"
START_MS = 1_790_000_000_000  # the recordings' timestamps are years old, as they were for Kafka
SETTLE_MS = 2_000
WORKED_ON_LATE = frozenset({"consumer"})
"""Workloads in which sessions end within tens of milliseconds of a request."""
LATE_MS = 10_000  # how much longer than in the recording a response may take to come


@dataclass(slots=True)
class Sent:
    """A request of the recording and what came of it."""

    step: int
    connection: str
    client_id: str
    api: str
    version: int
    request: Any
    requester: Requester | None = None
    response: Any = None
    failure: str | None = None
    done: bool = False
    is_sent: bool = False


@dataclass(slots=True)
class Connection:
    """One connection: requests wait for the one before them."""

    waiting: deque[Sent] = field(default_factory=deque)
    busy: Sent | None = None
    closed: bool = False


class RecordedClients(ClusterActor):
    """The actor that sends what the recording's connections sent."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        self.connections: dict[str, Connection] = {}

    def disconnect(self, name: str) -> None:
        """Close a connection as its client does; what it waits for is not read any more."""
        self.connections.pop(name, None)

    def on_receive(self, message: Any) -> None:
        if isinstance(message, Sent):
            connection = self.connections.setdefault(message.connection, Connection())
            if connection.closed:  # the client connects again
                connection = self.connections[message.connection] = Connection()
            connection.waiting.append(message)
            self._next(connection)
        elif isinstance(message, Completion):
            sent, connection = message.exchange.context
            sent.response, sent.failure, sent.done = message.response, message.failure, True
            connection.busy = None
            if message.failure not in (None, "no_response"):
                connection.closed = True
                connection.waiting.clear()
            self._next(connection)

    def _next(self, connection: Connection) -> None:
        if connection.busy is None and connection.waiting:
            sent = connection.busy = connection.waiting.popleft()
            self.network.request(
                src=CLIENT_ID,
                dst=BROKER,
                body=sent.request,
                version=sent.version,
                caller=self,
                context=(sent, connection),
                sender=Sender(client_id=sent.client_id, requester=sent.requester),
            )


def play(path: Path) -> Iterator[Outcome]:
    """Play one recording and compare each of its responses."""
    lines = read_lines(path)
    header = next(lines)
    require(header, ("workload", "settings"), f"{path}: no clients transcript: its first line")
    with _cluster(header["settings"], header.get("metadata_version")) as cluster:
        yield from _Player(path, cluster, header["workload"]).play(lines)


# Static settings of the recorded node that its header leaves out; responses show them.
UNLISTED = {
    "log.cleaner.threads": "1",
    "log.index.size.max.bytes": "1048576",
    "num.io.threads": "2",
}
SSL_KEYSTORE = {"ssl.keystore.password": "secret"}  # of a secured node
FORMATTED_WITH = {"alice": SCRAM_SHA_256, "erin": SCRAM_SHA_256, "bob": SCRAM_SHA_512}
SALT = b"sixteen bytes ok"
# From an abort until its markers are written, the recorded node took between 12 and 15 ms.
MARKERS_TAKE = Condition(kind="delay", src=BROKER, dst=BROKER, apis=("WriteTxnMarkers",), mean_ms=6)


def _cluster(settings: Mapping[str, Any], metadata_version: str | None) -> MiniCluster:
    taken = {SUPER_USERS, *broker_configs().keys}
    known = {n: v for n, v in settings.items() if n in taken and n not in OWN}
    is_secured = SUPER_USERS in known
    config = {**UNLISTED, **(SSL_KEYSTORE if is_secured else {}), **known}
    cluster = MiniCluster(
        brokers=1, controllers=1, wire=True, online=False, config=config,
        metadata_version=metadata_version,
        rules=Rules.KAFKA_4_3.as_shipped() if is_secured else None,
    )  # fmt: skip
    inside(cluster).rt.now_ms = START_MS  # type: ignore[attr-defined]
    inside(cluster).network.add(MARKERS_TAKE)
    return cluster


class _Player:
    def __init__(self, path: Path, cluster: MiniCluster, workload: str) -> None:
        self.path = path
        self.workload = workload
        self.cluster = cluster
        self.names = Names()
        self.offered = supported_versions(inside(cluster).rules)
        inside(cluster).rt.spawn(RecordedClients, "recorded-clients", inside(cluster).network)
        clients = inside(cluster).rt.actor("recorded-clients")
        assert isinstance(clients, RecordedClients)
        self.clients = clients
        self.sent: dict[int, Sent] = {}
        self.not_built: set[int] = set()
        self.requesters: dict[str, Requester] = {}  # by connection, where nodes are secured

    def play(self, lines: Iterator[dict[str, Any]]) -> Iterator[Outcome]:
        cluster = self.cluster
        cluster.run_for(f"{SETTLE_MS}ms")
        if self.workload == "secured":
            self._set_passwords()
        _make_one_node(cluster)
        start_ms = cluster.now_ms
        steps = []
        for number, step in enumerate(lines, 2):
            if not {"n", "ms", "answers"} <= set(step):
                raise UserError(
                    f"{self.path}: line {number} is no step: it has no n, ms or answers"
                )
            steps.append(step)
        if self.workload in WORKED_ON_LATE:
            steps = list(_worked_on_late(steps))
        leaders = self._follow_recorded_leaders(steps)
        replicas = inside(cluster).processes[BROKER].replicas
        assert replicas is not None
        replicas.set_timer(RETENTION_TIMER, start_ms + first_retention_ms(steps))
        for step in steps:
            leaders.begin(step["n"])
            if start_ms + step["ms"] > cluster.now_ms:
                cluster.run_for(f"{start_ms + step['ms'] - cluster.now_ms}ms")
            if "open" in step:
                self.requesters[step["open"]] = _requester(step)
            if "disconnect" in step:
                self.clients.disconnect(step["disconnect"])
            if "api" in step and not self._meets_closed_connection(step):
                self._send(step)
            # These responses may bind names in the next request, so the step ends with them.
            responded = partial(self._responded, step)
            inside(cluster).run_until(responded, LATE_MS)
            for response in step["answers"]:
                yield self._compare(step, response)

    def _set_passwords(self) -> None:
        """The credentials that the recorded node was formatted with."""
        kind = m.AlterUserScramCredentialsRequest.ScramCredentialUpsertion
        upsertions = []
        for name, mechanism in FORMATTED_WITH.items():
            salted = salted_password(mechanism, f"{name}-secret", SALT, MIN_ITERATIONS)
            upsertions.append(
                kind(
                    name=name,
                    mechanism=mechanism.type,
                    iterations=MIN_ITERATIONS,
                    salt=SALT,
                    salted_password=salted,
                )
            )
        request = m.AlterUserScramCredentialsRequest(upsertions=tuple(upsertions))
        sent = Sent(-1, "format", "format", "AlterUserScramCredentials", 0, request)
        self.clients.deliver(sent)
        inside(self.cluster).run_until(lambda: sent.done, LATE_MS)
        self.cluster.run_for(f"{SETTLE_MS}ms")

    def _follow_recorded_leaders(self, steps: Sequence[Mapping[str, Any]]) -> RecordedLeaders:
        leaders = RecordedLeaders(self.names, steps)
        replicas = inside(self.cluster).processes[BROKER].replicas
        assert replicas is not None
        groups = replicas.coordinators.groups.state
        groups.member_order = leaders.order
        groups.topic_hash = RecordedTopics(self.names, steps).hash_of
        return leaders

    def _responded(self, step: Mapping[str, Any]) -> bool:
        return all(
            self.sent[response["step"]].done
            for response in step["answers"]
            if response.get("step") in self.sent
        ) and all(self._is_closed(a["connection"]) for a in step["answers"] if a.get("closed"))

    def _is_closed(self, name: str) -> bool:
        connection = self.clients.connections.get(name)
        return connection is not None and connection.closed

    def _meets_closed_connection(self, step: Mapping[str, Any]) -> bool:
        """The recorded client sent this on a connection that its broker had already closed.

        A connection that is still open here gets it, and the recorded end of it differs.
        """
        open_steps = {n for a in step["answers"] if a.get("closed") for n in a["unanswered"]}
        return step["n"] in open_steps and self._is_closed(step["connection"])

    def _send(self, step: Mapping[str, Any]) -> None:
        api, version, number = step["api"], step["version"], step["n"]
        kind = getattr(m, f"{api}Request")
        if version not in self.offered.get(kind.api_key, range(0)):
            self.not_built.add(number)
            return
        form = self.names.replaced(step["request"])
        try:
            request = from_json(kind, with_bytes(kind, form), version)
        except ProtocolError as error:
            raise UserError(f"{self.path}: step {number}: {error}") from error
        except NotBuilt:
            self.not_built.add(number)
            return
        sent = Sent(number, step["connection"], step["client_id"], api, version, request)
        sent.requester = self.requesters.get(step["connection"])
        self.sent[number] = sent
        self.clients.deliver(sent)

    def _compare(self, step: Mapping[str, Any], response: Mapping[str, Any]) -> Outcome:
        where = f"{self.path.name} step {step['n']}"
        if response.get("closed"):
            return self._closed(where, response)
        api = response["api"]
        if response["step"] in self.not_built:
            self.names_of(response["response"])
            return Outcome(api, NOT_BUILT, where)
        sent = self.sent[response["step"]]
        request = _request_text(sent)
        if not sent.done or sent.response is None:
            why = sent.failure or "no response"
            return Outcome(api, DIFFER, where, f"  {request}\n  {why}")
        got = with_batches(type(sent.response), to_json(sent.response, sent.version))
        in_order = bool(getattr(sent.request, "topics", None))
        compared = Comparison(api, self.names, in_order, self.workload == "secured").of(
            response["response"], _as_combined(api, got)
        )
        shown = "\n".join([f"  {request}", *(str(d) for d in compared.differences[:8])])
        if compared.differences:
            return Outcome(api, DIFFER, where, shown)
        if compared.messages:
            shown = "\n".join([f"  {request}", *(str(d) for d in compared.messages[:8])])
            return Outcome(api, OTHER_MESSAGE, where, shown)
        if compared.not_advertised:
            return Outcome(api, NOT_BUILT, where)
        return Outcome(api, AGREE, where)

    def _closed(self, where: str, response: Mapping[str, Any]) -> Outcome:
        if self._is_closed(response["connection"]):
            return Outcome("(connection closed)", AGREE, where)
        return Outcome("(connection closed)", DIFFER, where, "  the connection stays open")

    def names_of(self, response: Any) -> None:
        """Give values to names that only a response which is not built would bind."""
        self.names.replaced(response)


def _requester(step: Mapping[str, Any]) -> Requester:
    """Who has logged in on a connection: a user, a certificate, or nobody in particular."""
    name = step.get("user") or step.get("certificate")
    principal = KafkaPrincipal(USER, name) if name else ANONYMOUS
    return Requester(principal, security_protocol=step["listener"])


def _worked_on_late(steps: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The steps at the time when the recorded node worked on them.

    A step's own time is that of its request. The node, on a busy machine, worked on it some tens of
    milliseconds later, as the ends of sessions show.
    """
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if following is None or all(a.get("step") != step["n"] for a in step["answers"]):
            yield step
        else:
            took_ms = following["ms"] - step["ms"]
            yield {**step, "ms": step["ms"] + took_ms * 7 // 10}


def _make_one_node(cluster: MiniCluster) -> None:
    """Give the controller the number of the recorded node, whose configs are its own as well."""
    shell = inside(cluster).processes[FIRST_CONTROLLER].controller
    assert shell is not None
    state = shell.controller.state
    state.settings = replace(state.settings, node_id=BROKER)


def _as_combined(api: str, response: dict[str, Any]) -> dict[str, Any]:
    """The response as the recorded node would give it: broker and controller, on the loopback."""
    if api in ("Metadata", "DescribeCluster"):
        for broker in response["brokers"]:
            broker["host"] = LOOPBACK
    if api == "FindCoordinator":
        for found in response.get("coordinators", (response,)):
            found["host"] = found["host"] and LOOPBACK
    if api == "DescribeConfigs":
        for result in response["results"]:
            for config in result["configs"]:
                if config["name"] == "process.roles":
                    _set_roles(config)
    if api != "DescribeQuorum":
        return response
    for topic in response.get("topics", ()):
        for partition in topic["partitions"]:
            if partition["leaderId"] == FIRST_CONTROLLER:
                partition["leaderId"] = BROKER
            for voter in partition["currentVoters"]:
                voter["replicaId"] = BROKER
            partition["observers"] = [o for o in partition["observers"] if o["replicaId"] != BROKER]
    for node in response.get("nodes", ()):
        node["nodeId"] = BROKER
        for listener in node["listeners"]:
            listener["host"] = LOOPBACK
    return response


def _set_roles(config: dict[str, Any]) -> None:
    for held in (config, *(config.get("synonyms") or ())):
        if held["value"] == "broker":
            held["value"] = "broker,controller"


def _request_text(sent: Sent, width: int = 700) -> str:
    text = f"v{sent.version} {sent.request!r}"
    return text if len(text) <= width else text[:width] + " …"
