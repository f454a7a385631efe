"""What a broker's replicas ask of the broker itself."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from minicluster.effects import Effect


@dataclass(frozen=True, slots=True)
class DirectoryFailed(Effect):
    """A log directory is lost: the lifecycle has to tell the controller (KIP-858)."""

    directory: uuid.UUID


@dataclass(frozen=True, slots=True)
class BrokerHalted(Effect):
    """The process has to end at once, as in a crash: it cannot go on without this directory."""

    reason: str
