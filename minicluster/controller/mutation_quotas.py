"""The quota of clients on partitions that they create and delete (``controller_mutation_rate``).

A token bucket for each user and client id that a quota is about: it fills at the rate of the quota,
and holds ``controller.quota.window.num`` windows of it. Each active controller begins with full
buckets. They are not part of the state: what a request has taken stays taken if it is rejected.

Leaves out: buckets of topics that a broker creates because a client requested their metadata;
            the wait of a connection after its response.
Source:  KIP-599; ControllerMutationQuotaManager, ClientQuotaManager.DefaultQuotaCallback,
         StrictControllerMutationQuota, PermissiveControllerMutationQuota, TokenBucket.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from minicluster.controller.errors import Rejected
from minicluster.metadata.image.quotas import ClientQuotasImage, Entity
from minicluster.protocol import ErrorCode
from minicluster.values import Value, replace

_KEY = "controller_mutation_rate"
_WINDOWS, _WINDOW_SECONDS = "controller.quota.window.num", "controller.quota.window.size.seconds"
_WINDOWS_DEFAULT, _WINDOW_SECONDS_DEFAULT = 11, 1


class QuotaClient(Value):
    """The client of a request, as quotas name it."""

    user: str = "ANONYMOUS"
    client_id: str = ""


ANONYMOUS = QuotaClient()


class _Bucket(Struct):
    tokens: float
    filled_ms: int

    def fill(self, rate: float, burst: float, now_ms: int) -> None:
        self.tokens = min(burst, self.tokens + rate * (now_ms - self.filled_ms) / 1_000)
        self.filled_ms = now_ms


class MutationQuota:
    """The quota of one request.

    Units:   throttle_time_ms: until the bucket is not below zero any more.
    """

    __slots__ = ("_bucket", "_is_strict", "_rate", "throttle_time_ms")

    def __init__(self, bucket: _Bucket | None, rate: float, *, is_strict: bool) -> None:
        self._bucket, self._rate, self._is_strict = bucket, rate, is_strict
        self.throttle_time_ms = 0

    def record(self, partitions: int) -> None:
        """Take tokens for partitions; a strict quota is checked before, another one afterwards.

        Errors:  Rejected with THROTTLING_QUOTA_EXCEEDED by a strict quota.
        """
        bucket = self._bucket
        if bucket is None:
            return
        if self._is_strict and bucket.tokens < 0:
            self._throttle(bucket.tokens)
            raise Rejected(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        bucket.tokens -= partitions
        if not self._is_strict and bucket.tokens < 0:
            self._throttle(bucket.tokens)

    def shown_in(self, response: Any) -> Any:
        """The response with the throttle time, as the client waits before its next request."""
        if not self.throttle_time_ms:
            return response
        return replace(response, throttle_time_ms=self.throttle_time_ms)

    def _throttle(self, tokens: float) -> None:
        self.throttle_time_ms = math.floor(-tokens / self._rate * 1_000 + 0.5)


UNBOUNDED = MutationQuota(None, math.inf, is_strict=False)


class MutationQuotas:
    """The buckets of one controller."""

    def __init__(self, static: Mapping[str, str]) -> None:
        windows = int(static.get(_WINDOWS, _WINDOWS_DEFAULT))
        self._burst_seconds = windows * int(static.get(_WINDOW_SECONDS, _WINDOW_SECONDS_DEFAULT))
        self._buckets: dict[tuple[str, str], _Bucket] = {}

    def quota_of(
        self, quotas: ClientQuotasImage, client: QuotaClient, *, is_strict: bool, now_ms: int
    ) -> MutationQuota:
        """The quota of a client's request, its bucket filled up to now.

        Shapes:  quotas: those that are committed.
        """
        if not quotas.table:
            return UNBOUNDED
        subject = _subject(quotas, client)
        rates = (_rate(quotas, entity) for entity in _entities(*subject))
        rate = next((rate for rate in rates if rate is not None), None)
        if rate is None:
            return UNBOUNDED
        burst = rate * self._burst_seconds
        bucket = self._buckets.setdefault(subject, _Bucket(burst, now_ms))
        bucket.fill(rate, burst, now_ms)
        return MutationQuota(bucket, rate, is_strict=is_strict)


def _entity(**names: str | None) -> Entity:
    return tuple(sorted((kind.replace("_", "-"), name) for kind, name in names.items()))


def _rate(quotas: ClientQuotasImage, entity: Entity) -> float | None:
    return quotas.table.get(entity, _KEY)


def _subject(quotas: ClientQuotasImage, client: QuotaClient) -> tuple[str, str]:
    """The user and client id that share a bucket, "" where all users or all clients do.

    The most specific entity that has a quota decides.

    Source:  DefaultQuotaCallback.quotaMetricTags.
    """
    user, client_id = client.user, client.client_id
    both, of_user, of_client = (user, client_id), (user, ""), ("", client_id)
    for entity, subject in (
        (_entity(user=user, client_id=client_id), both),
        (_entity(user=user, client_id=None), both),
        (_entity(user=user), of_user),
        (_entity(user=None, client_id=client_id), both),
        (_entity(user=None, client_id=None), both),
        (_entity(user=None), of_user),
    ):
        if _rate(quotas, entity) is not None:
            return subject
    return of_client


def _entities(user: str, client_id: str) -> tuple[Entity, ...]:
    """The entities whose quota a bucket may have, the most specific one first.

    Source:  DefaultQuotaCallback.findQuota.
    """
    if user and client_id:
        return (
            _entity(user=user, client_id=client_id),
            _entity(user=user, client_id=None),
            _entity(user=None, client_id=client_id),
            _entity(user=None, client_id=None),
        )
    if user:
        return _entity(user=user), _entity(user=None)
    return (_entity(client_id=client_id), _entity(client_id=None)) if client_id else ()
