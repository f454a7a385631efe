"""The garbage collector of a process whose clusters run while clients wait.

A full collection stops every thread until it has visited every object, and a cluster keeps millions
on purpose: the record of its run. Under load it held up all clients for half a second and more,
several times a minute. So what survives a collection is set aside (``gc.freeze``), and no later
collection visits it. Reference counts free it as before; a circle of references that becomes
garbage when it is old stays until everything is visited again. That is when the last cluster
closes, and after so many actors have ended: a node that was killed is one large circle.
"""

from __future__ import annotations

import gc
import threading
from typing import Any

ENDED_MAX = 50  # actors: some fifteen nodes

_lock = threading.Lock()
_clusters = 0
_ended = 0
_visits_all = False


def cluster_begins() -> None:
    """Set aside what is old from now on, until as many clusters have closed as have begun."""
    global _clusters, _ended, _visits_all
    with _lock:
        _clusters += 1
        if _clusters == 1:
            # Otherwise, actors of earlier clusters would let this one's first objects be visited.
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
