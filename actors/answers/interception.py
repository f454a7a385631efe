"""A function of the test that sees requests of clients, and may answer or change them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from minicluster.actors.answers.answer import Answer, Passed, Receiver, Requests, apis_of
from minicluster.actors.exchange import End, Exchange, Substitute
from minicluster.errors import UserError, counted
from minicluster.protocol import ProtocolError, encode
from minicluster.protocol.api_keys import BY_NAME
from minicluster.scenario.checks.limits import shown


class Interception(Answer):
    """A function of the test that sees each request, and may answer or change it.

    Shapes:  function(request) -> None: it reaches the node. Another request: that one does. A
             response, or the value of an ``End``: the node never gets the request. A generator
             yields the request (or None) for the node, gets the node's response, and returns what
             the client gets. failed: takes an error of the function; the request still reaches the
             node.
    """

    def __init__(
        self,
        requests: Requests,
        times: int | None,
        function: Callable[[Any], Any],
        failed: Callable[[BaseException], None],
    ) -> None:
        super().__init__("intercept", requests, times)
        self.function = function
        self.failed = failed

    def on_request(
        self, request: Any, exchange: Exchange, node: Receiver
    ) -> Substitute | Passed | None:
        if self.matched(request, node) is None:
            return None
        try:
            return self._of(self.function(request), request, exchange)
        except Exception as error:
            self.failed(error)
            return Passed(request, "failed", None)

    def _of(self, outcome: Any, request: Any, exchange: Exchange) -> Substitute | Passed:
        if not isinstance(outcome, Generator):
            if outcome is None or type(outcome) is type(request):
                return self._passed(outcome, request, exchange, None)
            return self._substitute(outcome, "before", exchange)
        try:
            yielded = next(outcome)
        except StopIteration as end:
            return self._of(end.value, request, exchange)
        return self._passed(yielded, request, exchange, outcome)

    def _passed(
        self, changed: Any, request: Any, exchange: Exchange, rest: Generator[Any, Any, Any] | None
    ) -> Passed:
        """The request reaches the node, and a generator waits for its response."""
        if changed is not None:
            self._check(changed, type(request), exchange)
        if rest is None and changed is None:
            return Passed(request, "seen", None)

        def change(response: Any) -> Substitute | None:
            if response is None:
                return None
            substitute = None
            if rest is not None:
                try:
                    substitute = self._end_of(rest, response, exchange)
                except Exception as error:
                    self.failed(error)
            if substitute is None and changed is not None:
                # The node's own response, but to another request than the client's: it misleads.
                substitute = self._substitute(response, "before", exchange)
            return substitute

        if changed is None:
            return Passed(request, "seen", change)
        return Passed(changed, "another request", change)

    def _end_of(
        self, rest: Generator[Any, Any, Any], response: Any, exchange: Exchange
    ) -> Substitute | None:
        try:
            rest.send(response)
        except StopIteration as end:
            return None if end.value is None else self._substitute(end.value, "after", exchange)
        raise UserError(f"intercept: {self._name} yields twice; it yields the request once")

    def _substitute(self, returned: Any, when: str, exchange: Exchange) -> Substitute:
        if isinstance(returned, str) and returned in {end.value for end in End}:
            return Substitute(by=self.action, description=returned, when=when, end=End(returned))
        self._check(returned, BY_NAME[exchange.api].response, exchange)
        return Substitute(
            by=self.action, description=self._name, when=when, response=returned, misleads=True
        )

    def _check(self, body: Any, kind: type[Any], exchange: Exchange) -> None:
        """Errors:  UserError for anything but such a message, or not of this version."""
        if type(body) is not kind:
            kinds = f"{exchange.api}Request or {exchange.api}Response, drop, close, reset or None"
            raise UserError(f"intercept: {self._name} gave {shown(body)}; it gives a {kinds}")
        try:
            encode(body, exchange.version)
        except ProtocolError as error:
            raise UserError(f"intercept: {self._name}: {error}") from None

    @property
    def text(self) -> str:
        """The requests that it has seen, for people."""
        return f"{self._name}: {counted(self.hits, 'request')} of {apis_of(self.requests)}"

    @property
    def _name(self) -> str:
        return name_of(self.function)


def name_of(function: Callable[..., Any]) -> str:
    """A function's own name."""
    return str(getattr(function, "__name__", type(function).__name__))
