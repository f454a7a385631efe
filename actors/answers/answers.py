"""The answers of a cluster: which of them acts on a request, and how often each has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minicluster.actors.answers.answer import Answer, Passed, Receiver
from minicluster.actors.exchange import OWN_CLIENT, End, Exchange, Substitute
from minicluster.protocol import messages as m
from minicluster.values import replace


class Answers:
    """The answers of a cluster, in the order in which they were given.

    Shapes:  on_hit: an answer has acted on an exchange, and what it did. on_over: it has acted as
             often as it was to.
    """

    def __init__(self) -> None:
        self.present: list[Answer] = []
        self.count_so_far = 0  # of answers that were ever given
        self.on_hit: Callable[[Answer, Exchange, str], None] = lambda *_: None
        self.on_over: Callable[[Answer], None] = lambda _: None

    def add(self, answer: Answer) -> None:
        self.present.append(answer)
        self.count_so_far += 1

    def remove(self, answer: Answer) -> bool:
        """Take an answer back; False for one that is over."""
        if answer.is_over:
            return False
        answer.is_over = True
        self.present.remove(answer)
        return True

    def on_request(
        self, request: Any, exchange: Exchange, node: Receiver
    ) -> Substitute | Passed | None:
        """A request has arrived at a node."""
        if exchange.src > OWN_CLIENT:
            return None
        for answer in list(self.present):
            if answer.requests.covers(exchange):
                outcome = answer.on_request(request, exchange, node)
                if isinstance(outcome, Passed) and outcome.change is None:
                    self._count(answer)
                elif outcome is not None:
                    self._hit(answer, exchange, outcome.description)
                    return outcome if isinstance(outcome, Passed) else _carried(outcome, exchange)
        return None

    def on_response(
        self, exchange: Exchange, response: Any, node: Receiver | None
    ) -> Substitute | None:
        """A node has responded; None without a response: to a Produce with acks=0."""
        change, exchange.change = exchange.change, None
        if change is not None:
            substitute: Substitute | None = change(response)
            return None if substitute is None else _carried(substitute, exchange)
        if exchange.src > OWN_CLIENT:
            return None
        for answer in list(self.present):
            if answer.requests.covers(exchange):
                substitute = answer.on_response(response, exchange, node)
                if substitute is not None:
                    self._hit(answer, exchange, substitute.description)
                    return _carried(substitute, exchange)
        return None

    def _hit(self, answer: Answer, exchange: Exchange, description: str) -> None:
        self.on_hit(answer, exchange, description)
        self._count(answer)

    def _count(self, answer: Answer) -> None:
        answer.hits += 1
        if answer.times is not None and answer.hits >= answer.times and self.remove(answer):
            self.on_over(answer)


def _carried(substitute: Substitute, exchange: Exchange) -> Substitute:
    """As a connection carries it: an error ends one without responses, as Kafka does."""
    is_unanswered = isinstance(exchange.request, m.ProduceRequest) and not exchange.request.acks
    if is_unanswered and substitute.response is not None:
        return replace(substitute, response=None, end=End.CLOSE)
    return substitute
