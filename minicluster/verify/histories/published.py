"""The images that nodes published, by event and by time."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable

from minicluster.verify.histories.traced_run import TracedRun

# A published image counts for the events of its broker from this long after it. The replicas of a
# broker that comes back take their first image up once the controller calls it caught up, which
# a lost heartbeat may delay: their first event shows that they have.
APPLIED_WITHIN_MS = 1000


class PublishedImages:
    """The offsets of the images that nodes published.

    An image from before the log, as far as it is kept, can be folded says nothing: None.
    """

    def __init__(self, run: TracedRun) -> None:
        self._first = run.first_image
        self._events: dict[int, array[int]] = defaultdict(lambda: array("q"))
        self._offsets: dict[int, array[int]] = defaultdict(lambda: array("q"))
        self._by_time: dict[tuple[int, str | None], list[tuple[int, int]]] = defaultdict(list)
        for row in run.rows("publish"):
            self._events[row["node"]].append(row["seq"])
            self._offsets[row["node"]].append(row["offset"])
            self._by_time[row["node"], row["incarnation"]].append((row["vt"], row["offset"]))
        for images in self._by_time.values():
            images.sort(key=lambda image: image[0])

    @property
    def nodes(self) -> Collection[int]:
        """Those that have published an image."""
        return self._events.keys()

    def latest(self, node: int, event: int) -> int | None:
        """The latest image of a node by an event, of any incarnation."""
        place = bisect_right(self._events.get(node, ()), event)
        return self._usable(self._offsets[node][place - 1]) if place else None

    def applied(self, node: int, incarnation: str | None, at_ms: int) -> int | None:
        """The latest image that an incarnation of a broker must have applied by a time."""
        images = self._by_time.get((node, incarnation), [])
        place = bisect_right(images, at_ms - APPLIED_WITHIN_MS, key=lambda image: image[0])
        return self._usable(images[place - 1][1]) if place else None

    def between(self, node: int, since: int, until: int) -> Iterable[int]:
        """The image that a node had by an event, and those that it published up to another one."""
        events = self._events.get(node, ())
        first = max(0, bisect_right(events, since) - 1)
        return self._offsets[node][first : bisect_right(events, until)] if events else ()

    def _usable(self, offset: int) -> int | None:
        return offset if offset >= self._first else None


def published_images(run: TracedRun) -> PublishedImages:
    """Context: the images that nodes published."""
    return PublishedImages(run)
