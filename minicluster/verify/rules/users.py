"""Users: what ACLs allow and deny, sessions that end, secrets (KIP-11, KIP-290, KIP-368)."""

from __future__ import annotations

from minicluster.verify.histories.users import AskedResource, SessionUse, TracedSecret
from minicluster.verify.model import Evidence
from minicluster.verify.rules.rule import CASE, Findings, broken, exempt, rule

_GRACE_MS = 1_000  # what was read in time may be handed over later, in real time
_CHANGED = "the ACLs changed while the request was under way"


@rule("U1", "Who lacks a right gets and changes nothing",
      source="KIP-11, KIP-290, KIP-801; StandardAuthorizer, KafkaApis",
      at_end=True, evidence=Evidence.TRACE, tables=("rpc", "publish"),
      breaks="User:alice has no WRITE on orders, and her Produce to it succeeds.",
      keeps="Her Produce gets TOPIC_AUTHORIZATION_FAILED; that of the super user "
      "succeeds.")  # fmt: skip
def who_lacks_a_right_gets_nothing(asked: AskedResource) -> Findings:
    """A request of a user whom the ACLs that its node has published deny the right to a resource
    changes nothing of it and shows nothing of it."""
    if asked.is_allowed is None:
        yield exempt(_CHANGED)
        return
    if asked.is_allowed:
        return
    yield CASE
    if asked.is_given:
        yield broken(
            f"{asked.principal} has no {asked.right} on {asked.kind} {asked.name}, and "
            f"{asked.api} gave it all the same",
            broker=asked.node,
        )


@rule("U2", "An ACL that a node has published is enforced",
      source="KIP-801; AclPublisher, StandardAuthorizer",
      at_end=True, evidence=Evidence.TRACE, tables=("rpc", "publish"),
      breaks="The node has published an ACL by which User:alice may write to orders, and her "
      "Produce gets TOPIC_AUTHORIZATION_FAILED.",
      keeps="Her Produce before the node published the ACL is denied, the next one "
      "succeeds.")  # fmt: skip
def a_published_acl_is_enforced(asked: AskedResource) -> Findings:
    """From the image on in which a node has published them, ACLs that allow a user something are
    enforced: its request is not denied for the lack of the right."""
    if asked.is_allowed is None:
        yield exempt(_CHANGED)
        return
    if not asked.is_allowed:
        return
    yield CASE
    if asked.is_denied:
        yield broken(
            f"{asked.principal} has {asked.right} on {asked.kind} {asked.name}, and {asked.api} "
            "was denied",
            broker=asked.node,
        )


@rule("U3", "A session that has ended sends nothing",
      source="KIP-368; SaslServerAuthenticator, KafkaChannel.serverAuthenticationSessionExpired",
      at_end=True, evidence=Evidence.TRACE, tables=("rpc",),
      breaks="The session of User:alice has ended two seconds before a request of it is taken.",
      keeps="A request is taken half a second later.")  # fmt: skip
def an_ended_session_sends_nothing(used: SessionUse) -> Findings:
    """A second after the end of the session of its connection no request is taken from it any more,
    but for another login."""
    yield CASE
    if used.sent_ms > used.ends_ms + _GRACE_MS:
        yield broken(
            f"the session of {used.principal} had ended {used.sent_ms - used.ends_ms} ms before "
            f"its {used.api}",
            broker=used.node,
        )


@rule("U4", "The trace has no secret",
      source="this project: a run's folder is shown to others",
      at_end=True, evidence=Evidence.TRACE, tables=("rpc",),
      breaks="The response to CreateDelegationToken stands in the trace with its HMAC.",
      keeps="It stands there with an empty one.")  # fmt: skip
def the_trace_has_no_secret(secret: TracedSecret) -> Findings:
    """Fields by which somebody could log in are empty in the trace: HMACs of delegation tokens,
    salted passwords, the bytes of logins, and those of requests in envelopes."""
    yield CASE
    if not secret.is_empty:
        yield broken(f"{secret.api} stands in the trace with its {secret.field}")
