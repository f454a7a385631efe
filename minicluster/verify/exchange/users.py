"""Exchanges with users: what ACLs allow and deny, sessions that end, secrets (KIP-11, KIP-290,
KIP-368).

subject   an exchange: a request of somebody, beside the ACLs that its node had published when it
          handled it
keeps     nothing of it

A request that a broker forwards is decided by a controller, somewhat later: it is judged where all
nodes agree for as long as it took.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from minicluster.verify.exchange.acls import CLUSTER, CLUSTER_NAME, Acls
from minicluster.verify.exchange.exchange import Exchange
from minicluster.verify.exchange.rights import ALSO_ON_CLUSTER, FORWARDED, Asked, asked_of
from minicluster.verify.histories.published import PublishedImages
from minicluster.verify.model import Evidence
from minicluster.verify.rules.rule import CASE, Findings, Said, broken, exempt, rule

_GRACE_MS = 1_000  # what was read in time may be handed over later, in real time
_CHANGED = "the ACLs changed while the request was under way"
_SECRETS = ("hmac", "saltedPassword", "authBytes", "requestData", "responseData")


class UserExchanges:
    """The exchanges with users, one by one.

    Shapes:  topics: names by id. images: those that nodes published.
    """

    def __init__(self, acls: Acls, images: PublishedImages, topics: Mapping[str, str]) -> None:
        self.acls, self.images, self.topics = acls, images, topics

    def on_exchange(self, exchange: Exchange) -> Said:
        """An exchange that has ended."""
        if exchange.session_ends_ms is not None:
            yield from an_ended_session_sends_nothing(exchange, exchange.session_ends_ms)
        for field, value in _secrets_of(exchange):
            yield from the_trace_has_no_secret(exchange, field, value)
        if self.acls.is_on and exchange.principal is not None and exchange.is_answered:
            for asked in asked_of(exchange, self.topics):
                is_allowed = self._is_allowed(exchange, asked)
                yield from who_lacks_a_right_gets_nothing(exchange, asked, is_allowed)
                yield from a_published_acl_is_enforced(exchange, asked, is_allowed)

    def _is_allowed(self, exchange: Exchange, asked: Asked) -> bool | None:
        """Whether the published ACLs allow it; None where they differ while it was under way."""
        nodes, since, until = [exchange.receiver], exchange.handle_seq, exchange.handle_seq
        if exchange.api in FORWARDED:
            nodes, until = [*self.images.nodes], exchange.resp_seq
        who = exchange.principal or "", exchange.host
        said = set()
        for node in nodes:
            for offset in self.images.between(node, since or 0, until or 0):
                allowed = self.acls.allow(offset, *who, asked.right, asked.kind, asked.name)
                if allowed is None:
                    return None
                if exchange.api in ALSO_ON_CLUSTER:
                    of_cluster = asked.right, CLUSTER, CLUSTER_NAME
                    allowed = allowed or self.acls.allow(offset, *who, *of_cluster)
                said.add(allowed)
        return said.pop() if len(said) == 1 else None


def _secrets_of(exchange: Exchange) -> Iterator[tuple[str, Any]]:
    """Each field of its messages by which somebody could log in."""
    for text in exchange.texts:
        if text and any(f'"{name}"' in text for name in _SECRETS):
            yield from _secrets(json.loads(text))


def _secrets(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        for item in value:
            yield from _secrets(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name in _SECRETS:
                yield name, item
            else:
                yield from _secrets(item)


@rule("U1", "Who lacks a right gets and changes nothing",
      source="KIP-11, KIP-290, KIP-801; StandardAuthorizer, KafkaApis",
      at_end=True, evidence=Evidence.TRACE, tables=("rpc", "publish"),
      breaks="User:alice has no WRITE on orders, and her Produce to it succeeds.",
      keeps="Her Produce gets TOPIC_AUTHORIZATION_FAILED; that of the super user "
      "succeeds.")  # fmt: skip
def who_lacks_a_right_gets_nothing(
    exchange: Exchange, asked: Asked, is_allowed: bool | None
) -> Findings:
    """A request of a user whom the ACLs that its node has published deny the right to a resource
    changes nothing of it and shows nothing of it."""
    if is_allowed is None:
        yield exempt(_CHANGED)
        return
    if is_allowed:
        return
    yield CASE
    if asked.is_given:
        yield broken(
            f"{exchange.principal} has no {asked.right} on {asked.kind} {asked.name}, and "
            f"{exchange.api} gave it all the same",
            broker=exchange.receiver,
            seq=exchange.resp_seq,
        )


@rule("U2", "An ACL that a node has published is enforced",
      source="KIP-801; AclPublisher, StandardAuthorizer",
      at_end=True, evidence=Evidence.TRACE, tables=("rpc", "publish"),
      breaks="The node has published an ACL by which User:alice may write to orders, and her "
      "Produce gets TOPIC_AUTHORIZATION_FAILED.",
      keeps="Her Produce before the node published the ACL is denied, the next one "
      "succeeds.")  # fmt: skip
def a_published_acl_is_enforced(
    exchange: Exchange, asked: Asked, is_allowed: bool | None
) -> Findings:
    """From the image on in which a node has published them, ACLs that allow a user something are
    enforced: its request is not denied for the lack of the right."""
    if is_allowed is None:
        yield exempt(_CHANGED)
        return
    if not is_allowed:
        return
    yield CASE
    if asked.is_denied:
        yield broken(
            f"{exchange.principal} has {asked.right} on {asked.kind} {asked.name}, and "
            f"{exchange.api} was denied",
            broker=exchange.receiver,
            seq=exchange.resp_seq,
        )


@rule("U3", "A session that has ended sends nothing",
      source="KIP-368; SaslServerAuthenticator, KafkaChannel.serverAuthenticationSessionExpired",
      at_end=True, evidence=Evidence.TRACE, tables=("rpc",),
      breaks="The session of User:alice has ended two seconds before a request of it is taken.",
      keeps="A request is taken half a second later.")  # fmt: skip
def an_ended_session_sends_nothing(exchange: Exchange, ends_ms: int) -> Findings:
    """A second after the end of the session of its connection no request is taken from it any more,
    but for another login."""
    yield CASE
    if exchange.sent_ms > ends_ms + _GRACE_MS:
        yield broken(
            f"the session of {exchange.principal} had ended {exchange.sent_ms - ends_ms} ms before "
            f"its {exchange.api}",
            broker=exchange.receiver,
            seq=exchange.send_seq,
        )


@rule("U4", "The trace has no secret",
      source="this project: a run's folder is shown to others",
      at_end=True, evidence=Evidence.TRACE, tables=("rpc",),
      breaks="The response to CreateDelegationToken stands in the trace with its HMAC.",
      keeps="It stands there with an empty one.")  # fmt: skip
def the_trace_has_no_secret(exchange: Exchange, field: str, value: Any) -> Findings:
    """Fields by which somebody could log in are empty in the trace: HMACs of delegation tokens,
    salted passwords, the bytes of logins, and those of requests in envelopes."""
    yield CASE
    if value:
        why = f"{exchange.api} stands in the trace with its {field}"
        yield broken(why, seq=exchange.send_seq)
