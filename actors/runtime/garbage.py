"""The garbage collector: no other module switches it while a cluster runs.

**On threads.** A full collection stops every thread until it has visited every object, and a
cluster keeps millions on purpose: the record of its run. Under load it held up all clients for half
a second and more, several times a minute. So what survives a collection is set aside
(``gc.freeze``), and no later collection visits it. Reference counts free it as before; a circle of
references that becomes garbage when it is old stays until everything is visited again. That is when
the last cluster closes, and after so many actors have ended: a node that was killed is one large
circle.

**Simulated.** A run keeps its old objects too, and full collections took a fifth of the time, a
third in a process with several clusters. So the collector is off from a cluster's first run to its
close, and the runtime looks at young objects now and then: seldom where steps leave little garbage.
Messages and rows that a run keeps for a while are gone by themselves when collections are rare.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ENDED_MAX = 50  # actors: some fifteen nodes
STEPS_PER_COLLECTION = 50_000  # of a simulated run
STEPS_PER_COLLECTION_MAX = 16 * STEPS_PER_COLLECTION
STEPS_PER_GARBAGE = 10  # an unreachable object for so many steps is little

_lock = threading.Lock()
_clusters = 0
_ended = 0
_visits_all = False
_simulations = 0
_was_enabled = False  # before the first of them


def simulation_begins() -> None:
    """Switch the collector off, until as many simulations have ended as have begun."""
    global _simulations, _was_enabled
    with _lock:
        _simulations += 1
        if _simulations == 1:
            _was_enabled = gc.isenabled()
            gc.disable()


def simulation_ends() -> None:
    """The last one switches the collector on again, if it was on."""
    global _simulations
    with _lock:
        _simulations -= 1
        if _simulations == 0 and _was_enabled:
            gc.enable()


def cluster_begins() -> None:
    """Set aside what is old from now on, until as many clusters have closed as have begun."""
    global _clusters, _ended, _visits_all
    with _lock:
        _clusters += 1
        if _clusters == 1:
            # Actors of earlier clusters must not let this one's first objects be visited.
            _ended, _visits_all = 0, False
            gc.callbacks.append(_on_collection)


def cluster_closes() -> None:
    """The last one gives all objects back to the collector."""
    global _clusters
    with _lock:
        _clusters -= 1
        if _clusters == 0:
            gc.callbacks.remove(_on_collection)
            gc.unfreeze()


def actor_ended() -> None:
    """Let the next full collection visit everything where many actors have ended."""
    global _ended, _visits_all
    with _lock:
        _ended += 1
        if _ended >= ENDED_MAX and _clusters:
            _ended, _visits_all = 0, True
            gc.unfreeze()


def _on_collection(phase: str, details: dict[str, Any]) -> None:
    global _visits_all
    generation = details["generation"]
    if phase == "stop" and generation:
        if generation == 2:
            _visits_all = False
        if not _visits_all:
            gc.freeze()


@contextmanager
def rare(objects: int) -> Iterator[None]:
    """With a collection after so many new objects alone: there is little garbage."""
    thresholds = gc.get_threshold()
    gc.set_threshold(objects, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def set_aside() -> None:
    """Let no later collection visit what there is by now, such as modules."""
    gc.freeze()


def collect() -> None:
    """Free the circles of a cluster that is closed; those of many seeds would pile up."""
    gc.collect()


class YoungCollections:
    """Collections of young garbage in a simulated run, by its steps."""

    def __init__(self) -> None:
        self._after = STEPS_PER_COLLECTION

    def collect(self, steps: int) -> int:
        """Collect after so many steps; -> the step of the next time.

        A collection visits all that was made since the last one.
        """
        few = gc.collect(1) < self._after // STEPS_PER_GARBAGE
        after = 2 * self._after if few else STEPS_PER_COLLECTION
        self._after = min(after, STEPS_PER_COLLECTION_MAX)
        return steps + self._after
