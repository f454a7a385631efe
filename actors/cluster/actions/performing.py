"""A declared action as a method: the signature and the text are the declaration's.

::

    @performs(Pause)
    def pause(cluster: ClusterRoles, do: Pause) -> None: ...

    class MiniCluster:
        pause = _face(pause)

    cluster.pause(leader, lasting="5s")  # the step {do: pause, node: …, lasting: 5s}
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from minicluster.actors.cluster.cluster import Cluster
from minicluster.errors import NoResponse, RequestRejected, UserError
from minicluster.scenario.actions.action import Action, Refusable, fields_of
from minicluster.scenario.actions.arguments import Duration, Milliseconds
from minicluster.security.principals import KafkaPrincipal, Requester, principal_of
from minicluster.security.protocols import SecurityProtocol

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=Cluster)
A = TypeVar("A", bound=Action)


class NothingActedOn(UserError):
    """The nodes of an action exist, and leave it nothing to act on.

    A test made a mistake; for a step whose selectors name such nodes now it is a note.
    """


class _WithRequester:
    """A running cluster, but for whom its client asks."""

    def __init__(self, cluster: Any, requester: Requester) -> None:
        self._cluster = cluster
        self.requester = requester

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)


def with_requester(cluster: S, principal: KafkaPrincipal) -> S:
    """The cluster, as one of its users asks it for things."""
    requester = Requester(principal, security_protocol=SecurityProtocol.SASL_PLAINTEXT)
    return cast(S, _WithRequester(cluster, requester))


def performs(
    declared: Callable[P, A],
    *,
    check: Callable[[S, A], None] | None = None,
) -> Callable[[Callable[[S, A], R]], Callable[Concatenate[S, P], R]]:
    """Make a function of a cluster and an action the method that the action declares.

    Shapes:  check: what a test's call is looked at for first; steps of scenarios have checks of
             their own.
    """

    def method_of(perform_it: Callable[[S, A], R]) -> Callable[Concatenate[S, P], R]:
        @wraps(perform_it)
        def perform(cluster: S, action: A) -> R:
            user = getattr(action, "as_user", None)
            asking = cluster if user is None else with_requester(cluster, principal_of(user))
            with cluster.rt.exclusive():
                return perform_it(asking, action)

        def perform_or_note(cluster: S, action: A) -> R | None:
            try:
                return perform(cluster, action)
            except (RequestRejected, NoResponse) as error:
                cluster.note(name, [], "note", str(error))
                return None

        def check_arguments(*args: Any, **kwargs: Any) -> None:
            try:
                shape.bind(*args, **kwargs)
            except TypeError as error:
                raise UserError(f"{name}: {error}; it takes {takes}") from None

        @wraps(perform_it)
        def method(self: S, *args: P.args, **kwargs: P.kwargs) -> R:
            self.check_running(name)
            try:
                action = declared(*args, **kwargs)
            except TypeError:
                check_arguments(*args, **kwargs)
                raise
            if check is not None:
                check(self, action)
            if isinstance(action, Refusable) and action.may_fail:
                return perform_or_note(self, action)  # type: ignore[return-value]
            return perform(self, action)

        shape = _signature(declared)
        name, takes = perform_it.__name__, ", ".join(shape.parameters)
        itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        shown: Any = method
        shown.__signature__ = shape.replace(
            parameters=[itself, *shape.parameters.values()],
            return_annotation=inspect.signature(perform_it).return_annotation,
        )
        owner = getattr(declared, "__self__", declared)  # of a second constructor: the class
        shown.__doc__ = owner.__doc__
        shown.perform = perform
        return cast(Callable[Concatenate[S, P], R], method)

    return method_of


def _signature(declared: Callable[..., Action]) -> inspect.Signature:
    """The signature of an action's class, from its fields, or of its second constructor."""
    if not isinstance(declared, type):
        return inspect.signature(declared)
    return inspect.Signature(
        [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY
                if field.kw_only
                else inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=inspect.Parameter.empty if field.default is MISSING else field.default,
                annotation=field.type,
            )
            for field in fields_of(declared)
        ]
    )


def ms(duration: Duration) -> Milliseconds:
    """The duration of an action in milliseconds."""
    assert isinstance(duration, Milliseconds)
    return duration
