"""A certificate's name becomes a principal by a listener's rules (KIP-371)."""

from __future__ import annotations

import pytest

from minicluster.errors import UserError
from minicluster.security.principals import ANONYMOUS
from minicluster.security.ssl_principals import SslPrincipalMapper

DAVE = "CN=Dave,OU=Ops,O=Org"


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        ("DEFAULT", f"User:{DAVE}"),
        ("", f"User:{DAVE}"),
        (r"RULE:^CN=(.*?),OU=Ops.*$/$1/", "User:Dave"),
        (r"RULE:^CN=(.*?),OU=Ops.*$/$1/L", "User:dave"),
        (r"RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2/U", "User:DAVE@OPS"),
        (r"RULE:^CN=(.*?),OU=Dev.*$/$1/, RULE:^CN=(.*?),.*$/second-$1/L", "User:second-dave"),
        (r"RULE:^OU=.*$/x/, DEFAULT", f"User:{DAVE}"),
        (r"RULE:^CN=(.*?),.*$/$12/", "User:Dave2"),
        (r"RULE:^CN=(.*?),.*$/$3/", "User:$3"),
        (r"RULE:^CN=(.*?),.*$/a\/$1/", "User:a/Dave"),
    ],
)
def test_the_first_rule_that_matches_makes_the_name(rules: str, principal: str) -> None:
    """With groups, and in lower or upper case where the rule says so."""
    assert str(SslPrincipalMapper(rules).principal(DAVE)) == principal


def test_where_no_rule_matches_there_is_no_principal() -> None:
    """Kafka ends such a connection."""
    assert SslPrincipalMapper(r"RULE:^OU=.*$/x/").principal(DAVE) is None


def test_without_a_certificate_a_client_is_anonymous() -> None:
    """As on PLAINTEXT."""
    assert SslPrincipalMapper(r"RULE:^OU=.*$/x/").principal(None) == ANONYMOUS


@pytest.mark.parametrize("rules", ["RULE:^CN=", "RULE:(/x/", "default", "RULE:a/b/L RULE:c/d/"])
def test_a_rule_that_cannot_be_read_is_named(rules: str) -> None:
    """In one line."""
    with pytest.raises(UserError, match=r"^ssl.principal.mapping.rules: "):
        SslPrincipalMapper(rules)
