"""From a certificate's name to a principal: ``ssl.principal.mapping.rules``.

    RULE:^CN=(.*?),OU=Ops.*$/$1/L, DEFAULT

The first rule whose pattern matches the whole distinguished name makes the principal's name: by a
replacement with ``$1`` for what a group has matched, in lower (L) or upper (U) case if it says so.
DEFAULT is the name as it is. Without rules the principal is the whole name.

Source:  KIP-371; SslPrincipalMapper, DefaultKafkaPrincipalBuilder.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from minicluster.errors import UserError
from minicluster.security.principals import ANONYMOUS, USER, KafkaPrincipal
from minicluster.values import Value

_RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)"
    r"|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))"
    r"\s*(?:,\s*|$)"
)
_GROUP = re.compile(r"\\(.)|\$(\d)(\d*)")
_CASES: dict[str, Callable[[str], str]] = {"": str, "L": str.lower, "U": str.upper}


class _Rule(Value):
    pattern: re.Pattern[str]
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        match = self.pattern.fullmatch(name)
        if match is None:
            return None
        return _CASES[self.case](_GROUP.sub(lambda group: _part(match, group), self.replacement))


def _part(match: re.Match[str], reference: re.Match[str]) -> str:
    """What stands for ``$12`` or ``\\x`` in a replacement; as in Java, ``$12`` may be ``$1`` and 2.

    A number that no group has is text.
    """
    escaped, first, more = reference.groups()
    if escaped is not None:
        return str(escaped)
    groups = match.re.groups
    while more and int(first + more[0]) <= groups:
        first, more = first + more[0], more[1:]
    return (match[int(first)] or "" if int(first) <= groups else f"${first}") + more


class SslPrincipalMapper:
    """The rules of a listener.

    Errors:  UserError for a rule that cannot be read, with its place.
    """

    def __init__(self, rules: str = "DEFAULT") -> None:
        self._rules: list[_Rule | None] = []  # None: DEFAULT
        at, text = 0, rules.strip() or "DEFAULT"
        while at < len(text):
            match = _RULE.match(text, at)
            if match is None:
                raise UserError(
                    "ssl.principal.mapping.rules: no rule begins at "
                    f"{text[at : at + 30]!r}; a rule is DEFAULT or RULE:PATTERN/REPLACEMENT/[LU]"
                )
            self._rules.append(None if match["default"] else _compiled(match))
            at = match.end()

    def principal(self, distinguished_name: str | None) -> KafkaPrincipal | None:
        """Whose certificate it is; ANONYMOUS without one, None where no rule matches.

        Where no rule matches, Kafka ends the connection.
        """
        if distinguished_name is None:
            return ANONYMOUS
        for rule in self._rules:
            name = distinguished_name if rule is None else rule.apply(distinguished_name)
            if name is not None:
                return KafkaPrincipal(USER, name)
        return None


def _compiled(match: re.Match[str]) -> _Rule:
    try:
        pattern = re.compile(match["pattern"])
    except re.error as error:
        raise UserError(
            f"ssl.principal.mapping.rules: {match['pattern']!r} is no expression: {error}"
        ) from error
    return _Rule(pattern, match["replacement"], match["case"])
