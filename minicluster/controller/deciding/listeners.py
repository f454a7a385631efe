"""The listeners that a broker or a controller registers.

Source:  ListenerInfo.fromBrokerRegistrationRequest, fromControllerRegistrationRequest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from minicluster.controller.errors import ControllerFault

_SECURITY_PROTOCOLS = range(4)


def check_listeners(listeners: Iterable[Any]) -> None:
    """Check the security protocols of listeners.

    Errors:  ControllerFault for one that there is not; Kafka's controller resigns.
    """
    for listener in listeners:
        if listener.security_protocol not in _SECURITY_PROTOCOLS:
            raise ControllerFault(f"listener {listener.name}: unknown security protocol")
