"""The other nodes of a quorum: machines of ours, whose messages to one node wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from minicluster.effects import Effect, Respond
from minicluster.protocol import decode, encode
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.messages import ApiVersionsRequest
from minicluster.quorum.effects import SendTo
from minicluster.quorum.settings import QuorumSettings
from tests.quorum.checks import Checks
from tests.quorum.network import Member, Network, api_versions
from tests.transcripts import quorum_forms as forms

Json = dict[str, Any]
FIRST_CORRELATION = 100_000
SMALL_SNAPSHOT_PIECE = 150


@dataclass(frozen=True, slots=True)
class _Sender:
    """Who waits for the response to a request."""

    member: Member
    life: int
    correlation_id: int
    version: int


class _Unchecked(Checks):
    """The invariants of a whole quorum cannot be seen without the node that is elsewhere."""

    def on_effect(self, network: object, member: object, effect: Effect) -> None:
        return


class Peers(Network):
    """A network in which one node is elsewhere.

    Shapes:  inbox: events of that node, in the order of their arrival.
    """

    def __init__(
        self,
        local: int,
        voters: Iterable[int],
        observers: Iterable[int],
        *,
        seed: int,
        dynamic: bool,
        start_ms: int,
    ) -> None:
        self.local = local
        self.inbox: deque[Json] = deque()
        self._senders: dict[int, _Sender] = {}
        self._requests = FIRST_CORRELATION
        settings = QuorumSettings(
            append_linger_ms=0, fetch_snapshot_max_bytes=SMALL_SNAPSHOT_PIECE, leaderless_pause_ms=0
        )
        super().__init__(voters, observers, seed=seed, dynamic=dynamic, settings=settings)
        self.checks = _Unchecked()
        self.advance(start_ms)
        self.inbox.clear()  # it was not there yet

    def start(self, node_id: int) -> None:
        """Start a node, unless it is the one that is elsewhere."""
        if node_id != self.local:
            super().start(node_id)

    @property
    def others(self) -> list[Member]:
        """All that run here."""
        return [member for member in self.members.values() if member.machine is not None]

    def next_correlation(self) -> int:
        """A number for a request to the node."""
        self._requests += 1
        return self._requests

    # --- to the node ------------------------------------------------------------------------------

    def _send(self, member: Member, send: SendTo) -> None:
        host = f"node{self.local}"
        if send.to != self.local and send.host != host:
            super()._send(member, send)
            return
        if (member.id, self.local) in self.cuts:
            return
        if isinstance(send.request, ApiVersionsRequest):  # the shell's, not the client's
            response, life = api_versions(), member.life
            self.at(
                self.now_ms + self._delay(),
                lambda: self._deliver(
                    _Sender(member, life, send.correlation_id, send.version), response
                ),
            )
            return
        version, body = self._earlier(send.request, send.version)
        event = {
            "kind": "request",
            "from": member.id,
            "correlation": self.next_correlation(),
            "api": forms.api_of(send.request),
            "version": version,
            "body": body,
        }
        self._senders[event["correlation"]] = _Sender(
            member, member.life, send.correlation_id, version
        )
        self.at(self.now_ms + self._delay(), lambda: self.inbox.append(event))

    def _earlier(self, request: Any, version: int) -> tuple[int, Json]:
        """The request as it arrives, now and then of an earlier version."""
        if self.random.random() < 0.1:
            earlier = self.random.choice(type(request).valid_versions)
            try:
                arrived = decode(type(request), encode(request, earlier), earlier)
                return earlier, forms.write_message(arrived, earlier)
            except ProtocolError:
                pass  # it has what that version cannot say
        return version, forms.write_message(request, version)

    def _respond(self, member: Member, respond: Respond) -> None:
        if respond.token[0] != "elsewhere":
            super()._respond(member, respond)
            return
        _, correlation, api, version = respond.token
        event = {
            "kind": "response",
            "correlation": correlation,
            "from": member.id,
            "api": api,
            "version": version,
            "body": forms.write_message(respond.response, version),
        }
        if (member.id, self.local) not in self.cuts:
            self.at(self.now_ms + self._delay(), lambda: self.inbox.append(event))

    # --- from the node ----------------------------------------------------------------------------

    def take(self, outbound: Json) -> None:
        """Take what the node has sent."""
        for request in outbound["requests"]:
            self._take_request(request)
        for response in outbound["responses"]:
            sender = self._senders.pop(response["correlation"], None)
            if sender is not None and (self.local, sender.member.id) not in self.cuts:
                self._take_response(sender, response)

    def _take_request(self, request: Json) -> None:
        target = self.members.get(int(request["host"].removeprefix("node")))
        if target is None or (self.local, target.id) in self.cuts:
            return
        correlation, api, version = request["correlation"], request["api"], request["version"]
        message = forms.read_message(api, "Request", version, request["body"])
        token = ("elsewhere", correlation, api, version)

        def arrive() -> None:
            if (self.local, target.id) in self.cuts:
                return
            if target.machine is None or not target.machine.is_running:
                self.inbox.append(
                    {
                        "kind": "disconnect",
                        "correlation": correlation,
                        "from": target.id,
                        "api": api,
                        "version": version,
                    }
                )
            elif isinstance(message, ApiVersionsRequest):
                self._respond(target, Respond(token, api_versions()))
            else:
                effects = target.machine.on_request(token, message, version, self.now_ms)
                self._perform(target, effects)

        self.at(self.now_ms + self._delay(), arrive)

    def _take_response(self, sender: _Sender, response: Json) -> None:
        version = response["version"]
        message = forms.read_message(response["api"], "Response", version, response["body"])
        self.at(self.now_ms + self._delay(), lambda: self._deliver(sender, message))

    def _deliver(self, sender: _Sender, message: Any) -> None:
        member = sender.member
        if member.life == sender.life and member.machine is not None:
            effects = member.machine.on_response(sender.correlation_id, message, self.now_ms)
            self._perform(member, effects)
