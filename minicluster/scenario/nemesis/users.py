"""Users in a drawn scenario: their producers, and rights that come and go meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from minicluster.scenario.nemesis.draws import MAY_FAIL, TOPICS, Draws, Step
from minicluster.security.authorizer import AUTHORIZER, SUPER_USERS

USERS = 0.2  # how many seeds have an authorizer, and users with rights
NAMES = ("alice", "bob")
CHANGES_PER_MINUTE = 30.0
_ACTIONS = ("grant", "grant", "revoke", "deny")
_STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def has_users(draws: Draws) -> bool:
    """True for a seed with users."""
    return draws.flip("users", USERS)


def config_of_users(draws: Draws) -> dict[str, Any]:
    """The configs of a seed with users; the cluster's own clients need no right."""
    return {AUTHORIZER: _STANDARD, SUPER_USERS: "User:admin"} if has_users(draws) else {}


def producers(draws: Draws) -> Iterator[Step]:
    """Each user produces to each topic, whether that is allowed or not."""
    if not has_users(draws):
        return
    for name in NAMES:
        if draws.flip(f"users/{name}"):
            yield {"do": "grant", "user": name, "operations": "WRITE", "topic": TOPICS[0]}
        for topic in TOPICS:
            yield {"do": "produce", "topic": topic, "rate": 1, "as_user": name}


def changes(draws: Draws, begins_ms: int, lasting_ms: int) -> Iterator[tuple[int, Step]]:
    """Grants, denials and revocations, of a topic or of those that a letter begins."""
    if not has_users(draws):
        return
    for n in range(draws.count("users/changes", CHANGES_PER_MINUTE * lasting_ms / 60_000)):
        name = f"users/changes/{n}"
        topic = TOPICS[draws.below(f"{name}/topic", len(TOPICS))]
        prefixed = draws.flip(f"{name}/prefixed", 0.3)
        step: Step = {
            "do": _ACTIONS[draws.below(f"{name}/action", len(_ACTIONS))],
            "user": NAMES[draws.below(f"{name}/user", len(NAMES))],
            "operations": "WRITE",
            "topic": topic[0] if prefixed else topic,
            **({"prefixed": True} if prefixed else {}),
            **MAY_FAIL,
        }
        yield begins_ms + draws.below(f"{name}/at", lasting_ms) // 100 * 100, step
