"""An API of the controller, declared by the module that decides it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minicluster.values import Value
from minicluster.zookeeper.controller.controller_state import ControllerState
from minicluster.zookeeper.controller.events import RequestReceived
from minicluster.zookeeper.process import Process


class ControllerApi(Value):
    """A request that the controller decides in turn with its other events.

    Shapes:  process responds; it is None where it has done so at once. preempted makes the response
             to a request that still waits when the broker's session expires, None for no response.
    Source:  kafka.controller.ControllerEvent.preempt.
    """

    request: type
    process: Callable[[ControllerState, RequestReceived], Process[None] | None]
    preempted: Callable[[Any], Any] = lambda request: None
