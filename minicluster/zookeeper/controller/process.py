"""Processes: the steps of an event between requests to ZooKeeper.

Kafka's controller thread waits for ZooKeeper at each of its requests. Here the event is a generator
that yields the requests, and goes on when the machine has their results: nothing blocks, nothing
else is processed meanwhile, and a rule reads as Kafka's.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

from minicluster.zookeeper.server.operations import Request, Result

T = TypeVar("T")

Process = Generator[tuple[Request, ...], tuple[Result, ...], T]
"""Yields requests that go out together, gets their results in order, returns a T."""
