"""The setting of a partition: the little that its rules ask of the rest of the run."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable

from minicluster.verify.histories.timeline import CommittedBroker
from minicluster.verify.histories.traced_run import TracedRun
from minicluster.verify.partition.event import Place


class Setting:
    """What is known while a cluster runs.

    Shapes:  is_in_log: whether the metadata log has a partition, as far as it is known.
             new_incarnation_leaves_from: as in ``Promises``. on_zookeeper: no log has partitions.
             is_over: of a run that has ended.
    """

    def __init__(
        self,
        is_in_log: Callable[[Place], bool],
        new_incarnation_leaves_from: int,
        *,
        on_zookeeper: bool = False,
        is_over: bool = False,
    ) -> None:
        self.is_in_log = is_in_log
        self.new_incarnation_leaves_from = new_incarnation_leaves_from
        self.on_zookeeper = on_zookeeper
        self.is_over = is_over

    def image_of(self, node: int, event: int) -> int | None:
        """The offset of the image that a node had published before an event.

        None: it had published none, or one that the log can make no more. While a cluster runs
        nothing is known of it: the rules that ask are judged at the end.
        """
        return None

    def broker_at(self, broker: int, offset: int) -> CommittedBroker | None:
        """A broker as the metadata log has it at an offset."""
        return None


class SettingOfRun(Setting):
    """Of a run that has ended: from the fold of its log, and the images that nodes published."""

    def __init__(self, run: TracedRun) -> None:
        super().__init__(
            run.timeline.partitions.__contains__,
            run.promises.new_incarnation_leaves_from,
            on_zookeeper=run.evidence.on_zookeeper,
            is_over=True,
        )
        self._first_image, self._timeline = run.first_image, run.timeline
        self._events: dict[int, array[int]] = defaultdict(lambda: array("q"))
        self._offsets: dict[int, array[int]] = defaultdict(lambda: array("q"))
        for row in run.rows("publish"):
            self._events[row["node"]].append(row["seq"])
            self._offsets[row["node"]].append(row["offset"])

    def image_of(self, node: int, event: int) -> int | None:
        """The offset of the image that a node had published before an event."""
        place = bisect_right(self._events.get(node, ()), event)
        offset = self._offsets[node][place - 1] if place else None
        return offset if offset is not None and offset >= self._first_image else None

    def broker_at(self, broker: int, offset: int) -> CommittedBroker | None:
        """A broker as the metadata log has it at an offset."""
        return self._timeline.broker_at(broker, offset)
