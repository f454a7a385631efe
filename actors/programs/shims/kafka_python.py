"""kafka-python: sockets and a selector of its own, a heap of tasks by address, sets in an order
of the process, a counter.

Its threads and locks are those of ``threading``, which programs have by baton.
"""

from __future__ import annotations

import itertools
import selectors
import socket
import ssl
import sys
import types
from collections.abc import Iterator
from typing import Any

from minicluster.actors.programs.shims import sets
from minicluster.actors.programs.shims.shim import Replaced, Shim
from minicluster.actors.runtime import tripwire

_places = itertools.count()  # of tasks, as they are made


def _replaced() -> Iterator[Replaced]:
    from minicluster.actors.programs import sockets, tls_socket

    in_programs = {
        "socket": _standing_in(
            socket, socket=sockets.Socket, socketpair=sockets.socketpair, getaddrinfo=_addresses
        ),
        "selectors": _standing_in(selectors, DefaultSelector=sockets.Selector),
    }
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "kafka":
            for attribute, other in in_programs.items():
                if getattr(module, attribute, None) is sys.modules[attribute]:
                    yield module, attribute, other
            for kind in list(vars(module).values()):
                yield from _defaults(kind, name, sockets.Selector)
    yield ssl.SSLContext, "wrap_socket", tls_socket.wrap_socket
    yield from sets.of_package("kafka")
    yield from _numbered_tasks() if "kafka.net" in sys.modules else _compared_connections()


def _compared_connections() -> Iterator[Replaced]:
    """2.3, client_async.py: a set of connections that send."""
    from kafka.conn import BrokerConnection

    yield BrokerConnection, "__lt__", lambda this, other: str(this.node_id) < str(other.node_id)


def _numbered_tasks() -> Iterator[Replaced]:
    """3.0, net/selector.py: tasks due at the same time come in the order of their addresses."""
    from kafka.net.selector import Task

    init = Task.__init__

    def numbered(this: Any, coro: Any) -> None:
        init(this, coro)
        this.place = next(_places)

    yield Task, "__init__", numbered
    yield Task, "__lt__", lambda this, other: this.place < other.place


def _defaults(kind: Any, module: str, selector: Any) -> Iterator[Replaced]:
    """Values that a class has bound when it was imported."""
    if not isinstance(kind, type) or kind.__module__ != module:
        return
    config = vars(kind).get("DEFAULT_CONFIG")
    if isinstance(config, dict) and config.get("selector") is selectors.DefaultSelector:
        of_system = config["selector"]
        make = lambda: of_system() if tripwire.program() is None else selector()  # noqa: E731
        yield kind, "DEFAULT_CONFIG", {**config, "selector": make}


def _standing_in(module: types.ModuleType, **others: Any) -> types.ModuleType:
    """A module of which some names are others in a program's step."""
    copied = types.ModuleType(module.__name__)
    copied.__dict__.update(module.__dict__)
    for name, other in others.items():
        setattr(copied, name, _switched(getattr(module, name), other))
    return copied


def _switched(own: Any, other: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        return (own if tripwire.program() is None else other)(*args, **kwargs)

    return call


def _addresses(host: Any, port: Any, *options: Any, **more: Any) -> Any:
    program: Any = tripwire.program()
    return program.resolve(host, port)


def _counters() -> Iterator[Replaced]:
    from kafka.producer import kafka as producer

    number = type(producer.PRODUCER_CLIENT_ID_SEQUENCE)()  # in the default client.id
    yield producer, "PRODUCER_CLIENT_ID_SEQUENCE", number


SHIM = Shim("kafka", "kafka-python", ("2.3", "3.0"), _replaced, _counters)
