"""The actions on what clients are answered.

An answer that acts is a row of the trace table ``fault``, with the request; it ends as often as it
was to act, after its time, by ``lift``, or with ``heal``.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from minicluster.actors.answers.answer import Answer, EndAnswer, LateAnswer, Requests
from minicluster.actors.answers.error_answer import ErrorAnswer
from minicluster.actors.answers.interception import Interception, name_of
from minicluster.actors.cluster.actions.performing import ms, performs
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.actors.exchange import End, Exchange
from minicluster.actors.links import Condition
from minicluster.actors.runtime import chance
from minicluster.durations import format_duration
from minicluster.errors import UserError
from minicluster.protocol import ErrorCode
from minicluster.protocol.api_keys import BY_NAME
from minicluster.protocol.uuids import parse_uuid
from minicluster.protocol.versions import parse_versions
from minicluster.scenario.actions import answers as declared
from minicluster.scenario.actions.network import Delay

Declared = (
    declared.Respond
    | declared.DropResponses
    | declared.CloseConnections
    | declared.Intercept
    | Delay
)


@performs(declared.Respond)
def respond(cluster: ClusterRoles, do: declared.Respond) -> Answer:
    errors = [ErrorCode[name] for name in do.error]
    times = _times(do, len(errors))
    answer = ErrorAnswer(_requests(cluster, do), times, errors, do.when)
    return _give(cluster, do, answer, " ".join(do.error))


@performs(declared.DropResponses)
def drop_responses(cluster: ClusterRoles, do: declared.DropResponses) -> Answer:
    answer = EndAnswer("drop_responses", _requests(cluster, do), _times(do), End.DROP, do.when)
    return _give(cluster, do, answer, End.DROP.value)


@performs(declared.CloseConnections)
def close_connections(cluster: ClusterRoles, do: declared.CloseConnections) -> Answer:
    end = End.RESET if do.connections == "reset" else End.CLOSE
    answer = EndAnswer("close_connections", _requests(cluster, do), _times(do), end, do.when)
    return _give(cluster, do, answer, end.value)


@performs(declared.Intercept)
def intercept(cluster: ClusterRoles, do: declared.Intercept) -> Answer:
    failed = cluster.rt.interrupted
    answer = Interception(_requests(cluster, do), do.times, do.function, failed)
    cluster.interceptions.append(answer)
    return _give(cluster, do, answer, name_of(do.function))


def delay_responses(cluster: ClusterRoles, do: Delay) -> Answer:
    """Let the responses to clients' requests come late, by the draws of a link's delay."""
    draws = Condition(
        kind="delay",
        src=0,
        dst=0,
        mean_ms=0 if do.mean is None else ms(do.mean),
        min_ms=0 if do.minimum is None else ms(do.minimum),
        distribution=do.distribution,
    )
    key = chance.key(cluster.seed, f"answer/{cluster.network.answers.count_so_far}")
    delay_ms = lambda hit: draws.delay_ms(chance.fraction(key, hit))  # noqa: E731
    answer = LateAnswer(_requests(cluster, do), _times(do), delay_ms)
    return _give(cluster, do, answer, format_duration(draws.mean_ms))


def lift_answers(cluster: ClusterRoles) -> None:
    """Take every answer back."""
    for answer in list(cluster.network.answers.present):
        answer.lift()


# How it is done.


def _requests(cluster: ClusterRoles, do: Declared) -> Requests:
    """The requests that an action is for.

    Errors:  UserError for an API or a version that no client sends.
    """
    apis = cast(tuple[str, ...], do.api)
    for api in apis:
        if api not in BY_NAME:
            raise UserError(f"{do.method}: no client sends {api}")
    versions = None if do.versions is None else parse_versions(str(do.versions))
    for api in apis if versions is not None else ():
        known = BY_NAME[api].request.valid_versions
        if versions is not None and not set(versions) & set(known):
            raise UserError(
                f"{do.method}: versions: {api} has versions {known[0]} to {known[-1]}, none of "
                f"{do.versions}"
            )
    partitions = cast(tuple[tuple[str, int], ...] | None, do.partitions)
    return Requests(
        apis=frozenset(apis),
        versions=versions,
        nodes=None if do.node is None else frozenset(cluster.ids(do.node)),
        client_id=None if do.client is None else str(do.client),
        topic=None if do.topic is None else str(do.topic),
        topic_id=None if do.topic_id is None else parse_uuid(str(do.topic_id)),
        partitions=None if partitions is None else frozenset(partitions),
    )


def _times(do: Declared, usual: int = 1) -> int | None:
    """How often an answer acts; one that lasts acts all the time."""
    if do.times is not None:
        return do.times
    return usual if do.lasting is None else None


def _give(cluster: ClusterRoles, do: Declared, answer: Answer, description: str) -> Answer:
    network = cluster.network
    network.answers.on_hit = partial(_hit, cluster)
    network.answers.on_over = partial(_over, cluster)

    def lift(_: Any = None) -> None:
        if network.take_back(answer):
            _over(cluster, answer)

    answer.lift = lift
    network.answer(answer)
    apis = " ".join(cast(tuple[str, ...], do.api))
    when = f" {do.when} it takes effect" if hasattr(do, "when") else ""
    detail = f"{apis} {description}{when}"
    cluster.note(answer.action, _targets(cluster, answer), "start", detail)
    if do.must_fire:
        cluster.must_fire.append((f"{answer.action}: {detail}", answer))
    if do.lasting is not None:
        cluster.rt.schedule(cluster.now_ms + ms(do.lasting), lift, None)
    return answer


def _targets(cluster: ClusterRoles, answer: Answer) -> list[int]:
    nodes = answer.requests.nodes
    return sorted(cluster.node_ids if nodes is None else nodes)


def _over(cluster: ClusterRoles, answer: Answer) -> None:
    cluster.note(answer.action, _targets(cluster, answer), "stop")


def _hit(cluster: ClusterRoles, answer: Answer, exchange: Exchange, description: str) -> None:
    """Record that an answer acts; the promises about time count from the last time."""
    cluster.disturbed_ms = cluster.now_ms
    of = exchange.sender.client_id or "the cluster's own client"
    detail = f"{description}: {exchange.api} {exchange.id} of {of}"
    cluster.note(answer.action, [exchange.dst], "hit", detail)
