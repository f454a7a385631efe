"""The effects of the controller on ZooKeeper, beside responses and timers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minicluster.effects import Effect, Respond
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.zookeeper.server.operations import Request


class RequestZooKeeper(Effect):
    """Send these requests at once, in order; all results come back together.

    Shapes:  at most one is under way; the results go to ``on_zookeeper``.
    """

    requests: tuple[Request, ...]


class OpenChannel(Effect):
    """Start a channel to a broker: its requests leave one after another."""

    broker: int


class CloseChannel(Effect):
    """Forget the channel to a broker, and all that waits in it."""

    broker: int


class ControlRequest(Effect):
    """Put a request into the channel to a broker; the response goes to ``on_control_response``."""

    to: int
    request: Any
    version: int


class RespondOnceLed(Respond):
    """Respond to ElectLeaders once this broker's metadata has the new leaders, or at a time."""

    leaders: Mapping[TopicPartition, int]
    expires_ms: int
