"""The authorizer decides as Kafka's own StandardAuthorizer did, question by question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from minicluster.metadata.image.security import AccessControlEntry, Acls
from minicluster.metadata.image.tables import Table
from minicluster.rules import Rules
from minicluster.security.acls import Operation, ResourceType
from minicluster.security.authorizer import (
    AuthorizerNotReady,
    AuthorizerSettings,
    NeverDecided,
    SearchFailed,
    StandardAuthorizer,
)
from minicluster.security.principals import KafkaPrincipal, Requester, java_host
from tests.security.recorded import entry, lines, seeds

SHIPPED = Rules.KAFKA_4_3.as_shipped()


@pytest.mark.parametrize("path", seeds("authorizer-decisions"), ids=lambda path: path.name[:-9])
def test_kafkas_decisions(path: Path) -> None:
    """Each question of each set of ACLs has Kafka's answer, its bugs included."""
    asked = 0
    for acl_set in lines(path):
        for number, question, answer in _played(acl_set, SHIPPED):
            place = f"{path.name}, set {acl_set['set']}, step {number}: {question}"
            assert answer == question["answer"], place
            asked += 1
    assert asked > 1_000


def test_the_search_for_the_wildcard_ends() -> None:
    """Unless it is as shipped, no ACL for ``#x`` keeps a question about ``#ab`` from its answer."""
    acls: Acls = Table("acls")
    sharp = {"type": "GROUP", "name": "#x", "pattern": "LITERAL", "principal": "User:a"}
    sharp |= {"host": "*", "operation": "READ", "permission": "ALLOW"}
    for number, acl in enumerate((sharp, sharp | {"name": "#", "pattern": "PREFIXED"})):
        acls = acls.put(entry(acl, number).id, entry(acl, number))
    for rules in (Rules.KAFKA_4_3, SHIPPED):
        authorizer = StandardAuthorizer(AuthorizerSettings(), rules)
        authorizer.publish(acls)
        question = (_requester("User:a"), Operation.READ, ResourceType.GROUP, "#ab")
        if rules.wildcard_search_starts_over:
            with pytest.raises(NeverDecided):
                authorizer.authorizes(*question)
        else:
            assert authorizer.authorizes(*question)


def test_an_acl_for_all_names_has_those_that_begin_with_an_asterisk() -> None:
    """As shipped, ``*`` leaves out ``*a``, though the name matches nothing better."""
    everything = {"type": "GROUP", "name": "*", "pattern": "LITERAL", "principal": "User:a"}
    everything |= {"host": "*", "operation": "READ", "permission": "ALLOW"}
    acls: Acls = Table("acls").put(entry(everything, 1).id, entry(everything, 1))
    for rules in (Rules.KAFKA_4_3, SHIPPED):
        authorizer = StandardAuthorizer(AuthorizerSettings(), rules)
        authorizer.publish(acls)
        expected = not rules.wildcard_acl_skips_longer_names
        may_read = authorizer.authorizes(
            _requester("User:a"), Operation.READ, ResourceType.GROUP, "*a"
        )
        assert may_read is expected


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::5", "2001:db8:0:0:0:0:0:5"),
        ("::ffff:10.0.0.2", "10.0.0.2"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1"),
    ],
)
def test_hosts_have_the_text_of_java(address: str, host: str) -> None:
    """ACLs are compared with it."""
    assert java_host(address) == host


def _played(acl_set: dict[str, Any], rules: Rules) -> list[tuple[int, dict[str, Any], str]]:
    config = acl_set["config"]
    settings = AuthorizerSettings.of(
        config.get("super.users", ""),
        config.get("allow.everyone.if.no.acl.found", "false"),
    )
    authorizer = StandardAuthorizer(settings, rules)
    entries: dict[str, AccessControlEntry] = {}
    for acl in acl_set["snapshot"]:
        entries[acl["id"]] = entry(acl, len(entries))
    acls: Acls = Table("acls")
    for known in entries.values():
        acls = acls.put(known.id, known)
    is_loaded = not any("loaded" in step for step in acl_set["steps"])
    answers = []
    for number, step in enumerate(acl_set["steps"]):
        if "loaded" in step:
            is_loaded = True
        elif "add" in step:
            added = entries[step["add"]["id"]] = entry(step["add"], len(entries))
            acls = acls.put(added.id, added)
        elif "remove" in step:
            acls = acls.remove(entries[step["remove"]].id)
        else:
            if is_loaded:
                authorizer.publish(acls)
            answers.append((number, step, _answer(authorizer, step)))
    return answers


def _answer(authorizer: StandardAuthorizer, question: dict[str, Any]) -> str:
    if question.get("pattern", "LITERAL") != "LITERAL":
        return "ERROR"  # no question can be asked here about anything but a name
    requester = _requester(question["principal"], question["address"])
    operation = Operation[question["operation"]]
    try:
        if "by_type" in question:
            of_type = ResourceType[question["by_type"]]
            allowed = authorizer.authorizes_any(requester, operation, of_type)
        else:
            of_type = ResourceType[question["type"]]
            allowed = authorizer.authorizes(requester, operation, of_type, question["name"])
    except NeverDecided:
        return "NEVER"
    except (AuthorizerNotReady, SearchFailed, ValueError):
        return "ERROR"
    return "ALLOWED" if allowed else "DENIED"


def _requester(principal: str, address: str = "127.0.0.1") -> Requester:
    return Requester(KafkaPrincipal.parse(principal), java_host(address))
