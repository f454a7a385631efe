"""A request without what any controller refuses of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minicluster.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Screened:
    """The part of a request that is left for the active controller.

    Shapes:  complete makes the response to the whole request from the response to what is left.
    """

    request: Any
    complete: Callable[[Any], Any]
