"""What a broker answers to clients from its published image, and what it passes on.

    image:     Metadata, ApiVersions, DescribeCluster
    blocks:    InitProducerId, without a transactional id
    replicas:  Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords  (ToReplicas)
    forwarded: everything administrative, to the active controller

``HANDLERS`` is the table, one line for each API key. Leaves out: authorization, quotas,
auto-creation of topics, groups, transactions.

Source:  KafkaApis, KRaftMetadataCache, ForwardingManager, ApiVersionManager.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from minicluster.broker.producer_ids import ProducerIds
from minicluster.effects import Effect, Respond
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.topics import TopicImage
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.api_versions import versions_of
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.topics import INTERNAL_TOPICS, invalid_name_reason
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.replica.to_controller.controller_channel import (
    ClientResponse,
    ControllerChannel,
    CorrelationIds,
)
from minicluster.rules import Rules

FORWARDING_TIMEOUT_MS = 60_000
NO_CONTROLLER = -1
_TOPICS_BY_ID = 12  # the first version of Metadata that can ask so
_PRODUCER_IDS = "producer ids"  # the token of requests that this broker itself makes


@dataclass(frozen=True, slots=True)
class ToReplicas(Effect):
    """Give this request to the broker's replica manager, which answers it."""

    token: Any
    request: Any
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientApiConfig:
    """Who answers."""

    broker_id: int
    cluster_id: str
    listener: str = "PLAINTEXT"
    rules: Rules = Rules.KAFKA_4_3


class ClientApi:
    """The machine. Inputs: ``on_metadata``, ``on_controller``, ``on_request``, ``on_response``,
    ``on_failure``, ``on_timer``. Effects: Respond, ToReplicas, Send (to the active controller),
    SetTimer and CancelTimer (``forwarding-channel``).
    """

    def __init__(self, config: ClientApiConfig, *, ids: CorrelationIds | None = None) -> None:
        self.config = config
        self.image = MetadataImage.EMPTY
        self.metadata_offset = -1
        self._producer_ids = ProducerIds(config.broker_id)
        self._channel = ControllerChannel(
            name="forwarding",
            ids=ids or CorrelationIds(),
            retry_timeout_ms=FORWARDING_TIMEOUT_MS,
        )

    def on_metadata(self, image: MetadataImage, offset: int) -> None:
        """A newer image was published; answers come from it from now on."""
        self.image = image
        self.metadata_offset = offset

    def on_controller(self, controller_id: int | None, now_ms: int) -> list[Effect]:
        """The active controller is this one, or nobody that is known."""
        return self._channel.on_controller(controller_id, now_ms)

    def on_request(self, token: Any, request: Any, version: int, now_ms: int) -> list[Effect]:
        """A request came; a token stands for whoever waits for the answer."""
        handler = HANDLERS.get(request.api_key)
        if handler is None:
            refusal = error_response(request, ErrorCode.UNSUPPORTED_VERSION, version=version)
            return [Respond(token, refusal)]
        return handler(self, token, request, version, now_ms)

    def owns(self, correlation_id: int) -> bool:
        """Whether an answer with this id is for this machine."""
        return self._channel.owns(correlation_id)

    def on_response(self, correlation_id: int, response: Any, now_ms: int) -> list[Effect]:
        """The controller answered what was forwarded."""
        answers = self._channel.on_response(correlation_id, response, now_ms)
        return self._replies(*answers, now_ms)

    def on_failure(self, correlation_id: int, now_ms: int) -> list[Effect]:
        """No answer will come from that controller; the request goes to the next one."""
        return self._replies(*self._channel.on_failure(correlation_id, now_ms), now_ms)

    def on_timer(self, name: str, now_ms: int) -> list[Effect]:
        """A timer of this machine fired; other names are ignored."""
        if name != self._channel.timer:
            return []
        return self._replies(*self._channel.on_timer(now_ms), now_ms)

    # -- forwarded -------------------------------------------------------------------------

    def forward(self, token: Any, request: Any, version: int, now_ms: int) -> list[Effect]:
        """Pass a request on to the active controller (KIP-590)."""
        return self._channel.submit(token, request, version, now_ms)

    def to_replicas(self, token: Any, request: Any, version: int, now_ms: int) -> list[Effect]:
        """Pass a request on to the replica manager."""
        return [ToReplicas(token, request, version)]

    def _replies(
        self, effects: list[Effect], answers: list[ClientResponse], now_ms: int
    ) -> list[Effect]:
        for answer in answers:
            response = answer.response
            if answer.token is _PRODUCER_IDS:
                self._producer_ids.on_answer(response, now_ms)
                continue
            if response is None:
                response = error_response(
                    answer.request, ErrorCode.REQUEST_TIMED_OUT, version=answer.version
                )
            effects.append(Respond(answer.token, response))
        return effects

    # -- InitProducerId --------------------------------------------------------------------

    def init_producer_id(self, token: Any, request: Any, version: int, now_ms: int) -> list[Effect]:
        """An id of the block at hand; the next block is asked for in time."""
        effects: list[Effect] = [Respond(token, self._producer_ids.answer(request))]
        own = self.image.cluster.broker(self.config.broker_id)
        wanted = self._producer_ids.request(-1 if own is None else own.epoch, now_ms)
        if wanted is not None:
            effects += self._channel.submit(_PRODUCER_IDS, wanted, wanted.latest_version, now_ms)
        return effects

    # -- ApiVersions -----------------------------------------------------------------------

    def api_versions(self, token: Any, request: Any, version: int, now_ms: int) -> list[Effect]:
        """Which APIs in which versions, and the finalized features (KIP-35, KIP-584)."""
        response = m.ApiVersionsResponse(
            api_keys=tuple(
                m.ApiVersionsResponse.ApiVersion(
                    api_key=key, min_version=versions[0], max_version=versions[-1]
                )
                for key, versions in supported_versions(self.config.rules).items()
            ),
            supported_features=tuple(
                m.ApiVersionsResponse.SupportedFeatureKey(
                    name=offer.name,
                    min_version=offer.min_supported_version,
                    max_version=offer.max_supported_version,
                )
                for offer in self._own_features()
            ),
            finalized_features_epoch=self.metadata_offset,
            finalized_features=tuple(
                m.ApiVersionsResponse.FinalizedFeatureKey(
                    name=name, max_version_level=level, min_version_level=level
                )
                for name, level in self.image.features.finalized().items()
            ),
        )
        return [Respond(token, response)]

    def _own_features(self) -> tuple[Any, ...]:
        own = self.image.cluster.broker(self.config.broker_id)
        return () if own is None else own.features

    # -- Metadata --------------------------------------------------------------------------

    def metadata(self, token: Any, request: Any, version: int, now_ms: int) -> list[Effect]:
        """Brokers, topics and partitions as published.

        Versions: in v0 no topic means all topics; later null does, and none means none.
        Source:   KafkaApis.handleTopicMetadataRequest, KRaftMetadataCache.getTopicMetadata.
        """
        asked = request.topics
        if asked is None or (version == 0 and not asked):
            topics = [self._topic(topic) for topic in self.image.topics]
        else:
            topics = [self._asked_topic(item, version) for item in asked]
        response = m.MetadataResponse(
            brokers=tuple(self._brokers()),
            cluster_id=self.config.cluster_id,
            controller_id=self._controller_for_clients(),
            topics=tuple(topics),
        )
        return [Respond(token, response)]

    def _brokers(self) -> Iterator[Any]:
        for broker in self.image.cluster.brokers.values():
            if broker.fenced:
                continue
            for endpoint in broker.endpoints:
                if endpoint.name == self.config.listener:
                    yield m.MetadataResponse.MetadataResponseBroker(
                        node_id=broker.id,
                        host=endpoint.host,
                        port=endpoint.port,
                        rack=broker.rack,
                    )

    def describe_cluster(self, token: Any, request: Any, version: int, now_ms: int) -> list[Effect]:
        """The brokers, fenced ones only if asked for (KIP-700, KIP-1073)."""
        kind = m.DescribeClusterResponse
        fenced = version >= 2 and request.include_fenced_brokers
        brokers = tuple(
            kind.DescribeClusterBroker(
                broker_id=broker.id,
                host=endpoint.host,
                port=endpoint.port,
                rack=broker.rack,
                is_fenced=broker.fenced,
            )
            for broker in self.image.cluster.brokers.values()
            for endpoint in broker.endpoints
            if endpoint.name == self.config.listener and (fenced or not broker.fenced)
        )
        response = kind(
            cluster_id=self.config.cluster_id,
            controller_id=self._controller_for_clients(),
            brokers=brokers,
        )
        return [Respond(token, response)]

    def _controller_for_clients(self) -> int:
        """A live broker, since any of them forwards: this one if it is live, else the first."""
        alive = [b.id for b in self.image.cluster.brokers.values() if not b.fenced]
        if self.config.broker_id in alive:
            return self.config.broker_id
        return alive[0] if alive else NO_CONTROLLER

    def _asked_topic(self, item: Any, version: int) -> Any:
        topics = self.image.topics
        by_id = item.topic_id != ZERO_UUID and not item.name
        if version < _TOPICS_BY_ID and (by_id or item.name is None):
            return _no_topic(ErrorCode.INVALID_REQUEST, item.name or "", item.topic_id)
        topic = topics.get(item.topic_id) if by_id else topics.named(item.name or "")
        if topic is not None:
            return self._topic(topic)
        if by_id:
            return _no_topic(ErrorCode.UNKNOWN_TOPIC_ID, None, item.topic_id)
        name = item.name or ""
        if invalid_name_reason(name) is not None:
            return _no_topic(ErrorCode.INVALID_TOPIC_EXCEPTION, name, ZERO_UUID)
        return _no_topic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name, ZERO_UUID)

    def _topic(self, topic: TopicImage) -> Any:
        return m.MetadataResponse.MetadataResponseTopic(
            error_code=ErrorCode.NONE,
            name=topic.name,
            topic_id=topic.id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=tuple(
                self._partition(index, partition) for index, partition in topic.items()
            ),
        )

    def _partition(self, index: int, partition: Any) -> Any:
        brokers = self.image.cluster.brokers.rows
        leader = brokers.get(partition.leader)
        reachable = leader is not None and any(
            endpoint.name == self.config.listener for endpoint in leader.endpoints
        )
        if leader is None:
            error = ErrorCode.LEADER_NOT_AVAILABLE
        else:
            error = ErrorCode.NONE if reachable else ErrorCode.LISTENER_NOT_FOUND
        offline = []
        for replica, directory in zip(partition.replicas, partition.directories, strict=True):
            broker = brokers.get(replica)
            if broker is None or broker.fenced or not broker.has_online_dir(directory):
                offline.append(replica)
        return m.MetadataResponse.MetadataResponsePartition(
            error_code=error,
            partition_index=index,
            leader_id=partition.leader if reachable else -1,
            leader_epoch=partition.leader_epoch,
            replica_nodes=partition.replicas,
            isr_nodes=partition.isr,
            offline_replicas=tuple(offline),
        )


def _no_topic(error: ErrorCode, name: str | None, topic_id: uuid.UUID) -> Any:
    return m.MetadataResponse.MetadataResponseTopic(
        error_code=error, name=name, topic_id=topic_id, is_internal=False, partitions=()
    )


Handler = Callable[[ClientApi, Any, Any, int, int], list[Effect]]

_REPLICAS = ("Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch", "DeleteRecords")
_FORWARDED = (
    "CreateTopics",
    "DeleteTopics",
    "CreatePartitions",
    "AlterConfigs",
    "IncrementalAlterConfigs",
    "ElectLeaders",
    "AlterPartitionReassignments",
    "ListPartitionReassignments",
    "UnregisterBroker",
    "UpdateFeatures",
    "DescribeQuorum",
    "AddRaftVoter",
    "RemoveRaftVoter",
)


def _table() -> Mapping[int, tuple[type[Any], Handler]]:
    """Every API that the protocol declares and that somebody here can answer, by key."""
    rows: dict[int, tuple[type[Any], Handler]] = {}
    for names, handler in (
        (("Metadata",), ClientApi.metadata),
        (("ApiVersions",), ClientApi.api_versions),
        (("DescribeCluster",), ClientApi.describe_cluster),
        (("InitProducerId",), ClientApi.init_producer_id),
        (_REPLICAS, ClientApi.to_replicas),
        (_FORWARDED, ClientApi.forward),
    ):
        for name in names:
            request = getattr(m, f"{name}Request", None)
            if request is not None:
                rows[request.api_key] = (request, handler)
    return dict(sorted(rows.items()))


_ROWS = _table()
HANDLERS: Mapping[int, Handler] = {key: handler for key, (_, handler) in _ROWS.items()}


def supported_versions(rules: Rules) -> dict[int, range]:
    """The versions that a broker of this release offers, by API key."""
    limits = versions_of(rules)
    offered = {}
    for key, (request, _) in _ROWS.items():
        low, high = limits.get(key, (request.valid_versions[0], request.valid_versions[-1]))
        offered[key] = range(low, min(high, request.valid_versions[-1]) + 1)
    return offered
