"""The actions on nodes: processes, controllers, disks, planted faults; and those of a play."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Annotated, ClassVar, Literal

from minicluster.scenario.actions.action import ADMIN_WITHIN, Action, Refusable
from minicluster.scenario.actions.arguments import (
    Drift,
    Duration,
    Fault,
    Flag,
    Nodes,
    whole,
)
from minicluster.scenario.checks import limits
from minicluster.values import dataclass

Connections = Literal["close", "reset"]
LoseTail = Literal["none", "torn", "unflushed", "all"]
DirectoryIndex = Annotated[int, whole(0, limits.DIRECTORIES_MAX - 1)]


@dataclass(frozen=True, slots=True)
class Pause(Action):
    """Stop the steps of nodes; their messages wait, time passes (SIGSTOP)."""

    node: Nodes
    _: KW_ONLY
    lasting: Duration | None = None


@dataclass(frozen=True, slots=True)
class Resume(Action):
    """Let paused nodes continue (SIGCONT)."""

    node: Nodes


@dataclass(frozen=True, slots=True)
class Kill(Action):
    """Stop nodes at once (SIGKILL); optionally lose the last write, what was not flushed, or all.

    The connections of clients end with FIN where all was read, else or with reset with RST.
    """

    node: Nodes
    _: KW_ONLY
    lose_tail: LoseTail = "none"
    connections: Connections = "close"


@dataclass(frozen=True, slots=True)
class Restart(Action):
    """Start nodes again, as new incarnations; one that runs is killed first.

    One whose controlled shutdown has begun ends it, and then starts.
    """

    node: Nodes


@dataclass(frozen=True, slots=True)
class Bounce(Action):
    """Kill nodes and start them again after a while."""

    node: Nodes
    _: KW_ONLY
    down: Duration = "1s"
    lose_tail: LoseTail = "none"
    connections: Connections = "close"


@dataclass(frozen=True, slots=True)
class Wipe(Action):
    """Give nodes new, empty disks; one that runs is killed first."""

    node: Nodes


@dataclass(frozen=True, slots=True)
class ControlledShutdown(Action):
    """Let brokers hand over and stop (SIGTERM); a controller just stops."""

    node: Nodes


@dataclass(frozen=True, slots=True)
class PublishDelay(Action):
    """Let brokers see committed metadata late; 0s ends it."""

    broker: Nodes
    delay: Duration
    _: KW_ONLY
    lasting: Duration | None = None


@dataclass(frozen=True, slots=True)
class ClockSkew(Action):
    """Let the clocks of nodes jump ahead, and go faster or slower than the cluster's.

    Arguments:  drift: 0.5 is half as fast again, -0.5 half as fast, 0 ends a drift. A clock never
                goes back: what it is ahead or behind stays.
    """

    node: Nodes
    _: KW_ONLY
    offset: Duration = "0s"
    drift: Drift = 0
    lasting: Duration | None = None


# Controllers.


@dataclass(frozen=True, slots=True)
class FailOver(Action):
    """Kill the active controller; start it again when another has taken over.

    With one controller, or where no other takes over in time, it is started again as well.
    """

    _: KW_ONLY
    within: Duration = "30s"


@dataclass(frozen=True, slots=True)
class Resign(Action):
    """Let the active controller resign from its epoch; the others hold an election."""

    node: Nodes = "active_controller()"


@dataclass(frozen=True, slots=True)
class Snapshot(Action):
    """Let controllers write a snapshot of what is committed (KIP-630)."""

    node: Nodes


@dataclass(frozen=True, slots=True)
class Compact(Action):
    """Let controllers drop their log before their newest snapshot; who lags must load that."""

    node: Nodes


@dataclass(frozen=True, slots=True)
class UpgradeKraftVersion(Refusable):
    """Raise kraft.version to 1, so that voters can change (UpdateFeatures).

    It waits until every voter has told the leader that it supports that, ``within`` at most.

    Errors:  RequestRejected with the controller's reason, such as a voter that is down and has told
             this leader nothing; NoResponse.
    """

    _: KW_ONLY
    within: Duration = ADMIN_WITHIN


@dataclass(frozen=True, slots=True)
class AddVoter(Refusable):
    """Let controllers that only observe vote, one after the other (KIP-853; kraft.version 1).

    Errors:  RequestRejected with the leader's reason; NoResponse.
    """

    node: Nodes
    _: KW_ONLY
    within: Duration = ADMIN_WITHIN


@dataclass(frozen=True, slots=True)
class RemoveVoter(Refusable):
    """Let voters only observe from now on, one after the other.

    Errors:  RequestRejected with the leader's reason; NoResponse.
    """

    node: Nodes
    _: KW_ONLY
    within: Duration = ADMIN_WITHIN


# Disks.


@dataclass(frozen=True, slots=True)
class SlowDisk(Action):
    """Let each write of a controller to its log or election state take a while; 0s ends it.

    Brokers do not wait for their disks: Kafka acknowledges what is in memory.
    """

    node: Nodes
    delay: Duration
    _: KW_ONLY
    lasting: Duration | None = None


@dataclass(frozen=True, slots=True)
class FlushOff(Action):
    """Let disks flush nothing and report that they did, until flush_on.

    A crash with ``lose_tail="unflushed"`` then takes what the node has promised to keep.
    """

    node: Nodes


@dataclass(frozen=True, slots=True)
class FlushOn(Action):
    """Let disks flush again."""

    node: Nodes


@dataclass(frozen=True, slots=True)
class FailDir(Action):
    """Break a log directory of brokers, counted from 0 (config log.dirs names them).

    A broker without any other, or whose metadata log lies in it (``metadata.log.dir``), halts.
    """

    broker: Nodes
    directory: DirectoryIndex = 0


@dataclass(frozen=True, slots=True)
class RepairDir(Action):
    """Repair a log directory of brokers; one that runs notices when it starts again."""

    broker: Nodes
    directory: DirectoryIndex = 0


# The run.


@dataclass(frozen=True, slots=True)
class Mutate(Action):
    """Plant a fault from here on, or take it out again: not planted."""

    fault: Fault
    _: KW_ONLY
    planted: Flag = True


@dataclass(frozen=True, slots=True)
class Wait(Action):
    """Do nothing; use with after."""

    of_scenarios: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Liveness(Action):
    """Undo every fault, start every node, and wait until the cluster has converged."""

    of_scenarios: ClassVar[bool] = True
    bound: Duration = "60s"
