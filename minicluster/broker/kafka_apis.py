"""The APIs of a broker, and the machine that serves them.

    own:        what a module of ``requests/`` responds from the published image
    forwarded:  what is declared forwardable, to the active controller
    others:     what the replica manager or a coordinator beside it handles never comes here

``APIS`` is read from the tables of those who handle the requests. Requests are authorized before
they come here (``authorization.py``). Leaves out: quotas.

Source:  KafkaApis, ForwardingManager, DefaultAutoTopicCreationManager, ApiVersionManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from minicluster.broker.api_state import ApiState, KafkaApisConfig
from minicluster.broker.requests.alter_configs import Preprocessed, preprocess
from minicluster.broker.requests.api_versions import api_versions
from minicluster.broker.requests.delegation_tokens import respond_to_token_request
from minicluster.broker.requests.describe_acls import describe_acls
from minicluster.broker.requests.describe_client_quotas import describe_client_quotas
from minicluster.broker.requests.describe_cluster import describe_cluster
from minicluster.broker.requests.describe_configs import describe_configs, list_config_resources
from minicluster.broker.requests.describe_user_scram_credentials import (
    describe_user_scram_credentials,
)
from minicluster.broker.requests.find_coordinator import TIMER as LOOKUP_TIMER
from minicluster.broker.requests.find_coordinator import (
    CoordinatorLookups,
    find_coordinator,
    missing_internal_topic,
)
from minicluster.broker.requests.metadata import (
    describe_topic_partitions,
    metadata,
    missing_topics,
)
from minicluster.broker.requests.security import reject_sasl
from minicluster.channel.controller_channel import (
    ControllerChannel,
    CorrelationIds,
)
from minicluster.configs.views import broker_default
from minicluster.coordinator.apis import COORDINATOR_APIS
from minicluster.coordinator.internal_topics import counts_at_start, creatable_topic
from minicluster.effects import Effect, Respond
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode, Message
from minicluster.protocol import messages as m
from minicluster.protocol.api import advertised_versions, highest_version
from minicluster.protocol.api_keys import APIS as DECLARED
from minicluster.protocol.error_responses import error_response
from minicluster.replica.machine import HANDLERS as REPLICA_HANDLERS
from minicluster.rules import Rules
from minicluster.security.screening import EVERYTHING, Access
from minicluster.values import Value

FORWARDING_TIMEOUT_MS = 60_000
CREATE_TOPICS_TIMEOUT_MS: int = broker_default("request.timeout.ms")
AUTO_CREATE_TOPICS = "auto.create.topics.enable"


class _OfClient(Value):
    """A forwarded request: who waits for it, and what this broker adds to its response."""

    token: Any
    preprocessed: Preprocessed | None = None


class _AutoCreation(Value):
    """A request that creates topics because a client requested their metadata."""

    names: tuple[str, ...]


class KafkaApis:
    """The machine.

    Inputs:  ``on_metadata``, ``on_request``, ``on_response``, ``on_failure``, ``on_timer``; and
             ``channel.on_controller``.
    Effects: Respond, Send (to the active controller), SetTimer and CancelTimer
             (``forwarding-channel``).
    """

    def __init__(self, config: KafkaApisConfig, *, ids: CorrelationIds | None = None) -> None:
        self.state = ApiState(config)
        self._creating: set[str] = set()
        self._lookups = CoordinatorLookups(partial(find_coordinator, self.state))
        self.channel = ControllerChannel(
            name="forwarding",
            ids=ids or CorrelationIds(),
            retry_timeout_ms=FORWARDING_TIMEOUT_MS,
        )

    def on_metadata(self, image: MetadataImage, offset: int) -> list[Effect]:
        """A newer image was published; responses come from it from now on.

        Shapes:  -> Respond for what has waited for a topic.
        """
        self.state.image = image
        self.state.metadata_offset = offset
        # On ZooKeeper the first images have some of the partitions alone.
        if not self.state.counts_at_start or self.state.on_zookeeper is not None:
            self.state.counts_at_start = counts_at_start(image, self.state.broker_levels)
        return self._lookups.respond(lambda name: image.topics.named(name) is not None)

    def on_metadata_offset(self, offset: int) -> None:
        """The published image holds for the log up to this offset."""
        self.state.metadata_offset = offset

    def on_request(
        self,
        token: Any,
        request: Any,
        version: int,
        now_ms: int,
        *,
        access: Access = EVERYTHING,
    ) -> list[Effect]:
        """Respond, or forward the request; the token identifies the client.

        Shapes:  access: what the client may do; only requests about delegation tokens ask for it.
        """
        if type(request) in TOKEN_REQUESTS:
            return self.delegation_tokens(token, request, version, now_ms, access)
        handle = HANDLERS.get(type(request))
        if handle is None:
            rejection = error_response(request, ErrorCode.UNSUPPORTED_VERSION, version=version)
            return [Respond(token, rejection)]
        return handle(self, token, request, version, now_ms)

    def on_response(self, correlation_id: int, response: Any, now_ms: int) -> list[Effect]:
        """The controller responded to what was sent."""
        return self._complete(self.channel.on_response(correlation_id, response, now_ms), now_ms)

    def on_failure(self, correlation_id: int, now_ms: int) -> list[Effect]:
        """No response will come from that controller; the request goes to the next one."""
        return self._complete(self.channel.on_failure(correlation_id, now_ms), now_ms)

    def on_timer(self, name: str, now_ms: int) -> list[Effect]:
        """A timer of this machine fired; other names are ignored."""
        if name == LOOKUP_TIMER:
            return self._lookups.on_timer(now_ms)
        if name != self.channel.timer:
            return []
        return self._complete(self.channel.on_timer(now_ms), now_ms)

    # -- the ways of a request -------------------------------------------------------------

    def forward(self, token: Any, request: Any, version: int, now_ms: int) -> list[Effect]:
        """Pass a request on to the active controller (KIP-590)."""
        return self.channel.submit(_OfClient(token), request, version, now_ms, client=token)

    def alter_configs(self, token: Any, request: Any, version: int, now_ms: int) -> list[Effect]:
        """Forward what this broker does not reject itself."""
        preprocessed = preprocess(self.state, request)
        if not preprocessed.request.resources:
            return [Respond(token, preprocessed.whole_response(None))]
        sent = _OfClient(token, preprocessed)
        return self.channel.submit(sent, preprocessed.request, version, now_ms, client=token)

    def delegation_tokens(
        self, token: Any, request: Any, version: int, now_ms: int, access: Access
    ) -> list[Effect]:
        """Respond from the image, or forward what this broker does not reject itself."""
        response = respond_to_token_request(self.state, request, version, access)
        if response is None:
            return self.forward(token, request, version, now_ms)
        return [Respond(token, response)]

    def metadata(self, token: Any, request: Any, version: int, now_ms: int) -> list[Effect]:
        """Respond from the image, and create the topics that are missing, where that is on."""
        names: tuple[str, ...] = ()
        if self.state.broker_levels.value(AUTO_CREATE_TOPICS) == "true":
            missing = missing_topics(self.state, request, version)
            names = tuple(name for name in missing if name not in self._creating)
        respond = Respond(token, metadata(self.state, request, version, names))
        return [respond, *(self._create_topics(names, now_ms) if names else ())]

    def find_coordinator(self, token: Any, request: Any, version: int, now_ms: int) -> list[Effect]:
        """Respond from the image, and create the internal topic when it is first needed."""
        missing = missing_internal_topic(self.state, request)
        if missing is None:
            return [Respond(token, find_coordinator(self.state, request, version))]
        effects = self._lookups.wait(token, request, version, missing, now_ms)
        if missing in self._creating:
            return effects
        return effects + self._create_topics((missing,), now_ms)

    def _create_topics(self, names: tuple[str, ...], now_ms: int) -> list[Effect]:
        self._creating.update(names)
        levels = self.state.broker_levels
        create = m.CreateTopicsRequest(
            topics=tuple(creatable_topic(name, levels) for name in names),
            timeout_ms=CREATE_TOPICS_TIMEOUT_MS,
        )
        highest = highest_version(self.state.rules, create)
        return self.channel.submit(_AutoCreation(names), create, highest, now_ms)

    def api_versions(self, token: Any, request: Any, version: int, now_ms: int) -> list[Effect]:
        """Respond with the table."""
        unserved = self.state.config.unserved
        versions = supported_versions(self.state.rules)
        served = {key: range_ for key, range_ in versions.items() if key not in unserved}
        return [Respond(token, api_versions(self.state, request, version, served))]

    def _complete(self, effects: list[Effect], now_ms: int) -> list[Effect]:
        for ended in self.channel.take_ended():
            response = ended.response
            match ended.token:
                case _AutoCreation(names):
                    self._creating.difference_update(names)
                    effects += self._end_of_creation(names, response)
                case _OfClient(token, preprocessed):
                    if response is None:
                        timed_out = ErrorCode.REQUEST_TIMED_OUT
                        response = error_response(ended.request, timed_out, version=ended.version)
                    if preprocessed is not None:
                        response = preprocessed.whole_response(response)
                    effects.append(Respond(token, response))
        return effects

    def _end_of_creation(self, names: tuple[str, ...], response: Any) -> list[Effect]:
        """A topic that was not made ends the wait for it; one that was comes with the metadata."""
        topics = () if response is None else response.topics
        failed = {topic.name for topic in topics if topic.error_code not in _MADE}
        failed.update(names if response is None else ())
        return self._lookups.respond(failed.__contains__)


_MADE = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
Handler = Callable[[KafkaApis, Any, Any, int, int], list[Effect]]
FromImage = Callable[[ApiState, Any, int, int], Any]


def _from_image(respond: FromImage) -> Handler:
    def handle(
        apis: KafkaApis, token: Any, request: Any, version: int, now_ms: int
    ) -> list[Effect]:
        return [Respond(token, respond(apis.state, request, version, now_ms))]

    return handle


# Brokers send it to the controller themselves; no broker takes it from a client.
_OF_BROKERS_ONLY = m.AllocateProducerIdsRequest

TOKEN_REQUESTS: frozenset[type[Message]] = frozenset(
    {
        m.CreateDelegationTokenRequest,
        m.RenewDelegationTokenRequest,
        m.ExpireDelegationTokenRequest,
        m.DescribeDelegationTokenRequest,
    }
)
"""Those that ask what their client may do. The last is responded to, the others are forwarded."""

HANDLERS: Mapping[type[Message], Handler] = {
    **{
        api.request: KafkaApis.forward
        for api in DECLARED.values()
        if api.forwardable and api.request not in (_OF_BROKERS_ONLY, *TOKEN_REQUESTS)
    },
    m.AlterConfigsRequest: KafkaApis.alter_configs,
    m.IncrementalAlterConfigsRequest: KafkaApis.alter_configs,
    m.MetadataRequest: KafkaApis.metadata,
    m.FindCoordinatorRequest: KafkaApis.find_coordinator,
    m.ApiVersionsRequest: KafkaApis.api_versions,
    m.SaslHandshakeRequest: _from_image(reject_sasl),
    m.SaslAuthenticateRequest: _from_image(reject_sasl),
    m.DescribeAclsRequest: _from_image(describe_acls),
    m.DescribeConfigsRequest: _from_image(describe_configs),
    m.DescribeClientQuotasRequest: _from_image(describe_client_quotas),
    m.DescribeUserScramCredentialsRequest: _from_image(describe_user_scram_credentials),
    m.DescribeClusterRequest: _from_image(describe_cluster),
    m.ListConfigResourcesRequest: _from_image(list_config_resources),
    m.DescribeTopicPartitionsRequest: _from_image(describe_topic_partitions),
}
"""The requests that come to this machine."""

FORWARDED: frozenset[type[Message]] = frozenset(
    request
    for request, handle in HANDLERS.items()
    if handle in (KafkaApis.forward, KafkaApis.alter_configs)
)
"""The requests that go on to the active controller."""

APIS: frozenset[type[Message]] = frozenset(
    {*HANDLERS, *TOKEN_REQUESTS, *REPLICA_HANDLERS, *COORDINATOR_APIS}
)
"""Every API of a broker. What is not in it is not advertised."""


@cache
def supported_versions(rules: Rules) -> Mapping[int, range]:
    """The versions that a broker of this release serves, by API key."""
    return advertised_versions(rules, APIS)
