"""The ZooKeeper server: the actor around its machine, and the log of its transactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from minicluster.actors.links import Packet
from minicluster.actors.network import Completion
from minicluster.actors.nodes.shell import NodeContext, Shell
from minicluster.actors.recording.metadata_sink import Inlet
from minicluster.actors.zookeeper.log import ZooKeeperLog
from minicluster.effects import Respond
from minicluster.log.batch import metadata_batch
from minicluster.zookeeper.server.effects import LogTransaction, NotifyWatch
from minicluster.zookeeper.server.machine import ZooKeeperMachine
from minicluster.zookeeper.server.messages import (
    VERSION,
    ZooKeeperCloseRequest,
    ZooKeeperConnectRequest,
    ZooKeeperConnectResponse,
    ZooKeeperOperationRequest,
    ZooKeeperOperationResponse,
    ZooKeeperPingRequest,
    ZooKeeperWatchRequest,
)
from minicluster.zookeeper.server.operations import Result
from minicluster.zookeeper.znodes.image import ZnodeImage

WATCH_TIMEOUT_MS = 1_000
EPOCH = 1  # of the batches that tests and rules read: there is one ZooKeeper server


class ZooKeeperServer(Shell):
    """One server for the whole cluster; what it commits is what tests and rules see."""

    def __init__(self, context: NodeContext, inlet: Inlet, log: ZooKeeperLog) -> None:
        super().__init__(context)
        self.machine = ZooKeeperMachine(tick_ms=context.config.zookeeper_tick_ms)
        self._inlet, self._log = inlet, log
        self._image = ZnodeImage()
        self._clients: dict[int, int] = {}  # the node of each session
        self._session_of: dict[int, int] = {}  # of each correlation id of a watch event
        self._watches: dict[int, ZooKeeperWatchRequest] = {}
        self._next_id = 0

    def interpreters(self) -> Mapping[type, Callable[[Any], None]]:
        return {
            LogTransaction: self._logged,
            NotifyWatch: self._notify,
            Respond: self._send_response,
        }

    def on_packet(self, packet: Packet) -> None:
        body, now_ms = packet.body, self.now()
        match body:
            case ZooKeeperConnectRequest():
                self.perform(self.machine.on_connect(packet, body.session, body.timeout_ms, now_ms))
            case ZooKeeperPingRequest():
                self.perform(self.machine.on_ping(packet, body.session, now_ms))
            case ZooKeeperCloseRequest():
                self.perform(self.machine.on_close(packet, body.session, now_ms))
            case ZooKeeperOperationRequest():
                self.perform(self.machine.on_request(packet, body.session, body.request, now_ms))
            case _:
                super().on_packet(packet)

    def on_wakeup(self, name: str) -> None:
        self.perform(self.machine.on_timer(name, self.now()))

    def on_response(self, completion: Completion) -> None:
        """A client has its watch event; one that did not arrive is sent again while it lives."""
        request = self._watches.pop(completion.exchange.correlation_id)
        if completion.failure is not None and request.session in self._clients:
            self._send_watch(request)

    def _send_response(self, respond: Respond) -> None:
        packet, response = respond.token, respond.response
        if isinstance(response, int):
            if response:
                self._clients[response] = packet.exchange.src
            self.network.respond(packet, ZooKeeperConnectResponse(response))
        else:
            assert isinstance(response, Result), response
            self.network.respond(packet, ZooKeeperOperationResponse(response))

    def _notify(self, notify: NotifyWatch) -> None:
        self._send_watch(ZooKeeperWatchRequest(notify.session, notify.event))

    def _send_watch(self, request: ZooKeeperWatchRequest) -> None:
        self._next_id += 1
        self._watches[self._next_id] = request
        self.network.request(
            src=self.node_id,
            dst=self._clients[request.session],
            body=request,
            version=VERSION,
            caller=self,
            correlation_id=self._next_id,
            timeout_ms=WATCH_TIMEOUT_MS,
        )

    def _logged(self, transaction: LogTransaction) -> None:
        self._log.append(transaction, self._clients.get(transaction.session))
        if transaction.kind == "close_session":
            self._clients.pop(transaction.session, None)
        records = self._image.on_changes(transaction.changes)
        if records:
            start = self._inlet.next_offset
            batch = metadata_batch(start, EPOCH, transaction.at_ms, records)
            self._inlet.offer((batch,))
