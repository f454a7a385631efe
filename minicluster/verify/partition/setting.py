"""The setting of a partition: the little that its rules ask of the rest of the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minicluster.verify.histories.published import published_images
from minicluster.verify.histories.timeline import CommittedBroker, CommittedPartition
from minicluster.verify.histories.traced_run import TracedRun
from minicluster.verify.partition.event import Place


class Setting:
    """The facts around a partition while a cluster runs.

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

    def applied_image_of(self, node: int, incarnation: str | None, at_ms: int) -> int | None:
        """The offset of the image that a broker had published some time before a moment."""
        return None

    def broker_at(self, broker: int, offset: int) -> CommittedBroker | None:
        """A broker as the metadata log has it at an offset."""
        return None

    def partition_at(self, place: Place, offset: int) -> CommittedPartition | None:
        """A partition as the metadata log has it at an offset."""
        return None

    def states_of(self, place: Place) -> Sequence[CommittedPartition]:
        """All states of a partition, also those that are committed later."""
        return ()


class SettingOfRun(Setting):
    """Of a run that has ended: from the fold of its log, and the images that nodes published."""

    def __init__(self, run: TracedRun) -> None:
        super().__init__(
            run.timeline.partitions.__contains__,
            run.promises.new_incarnation_leaves_from,
            on_zookeeper=run.evidence.on_zookeeper,
            is_over=True,
        )
        self._timeline, self._images = run.timeline, run.context(published_images)

    def image_of(self, node: int, event: int) -> int | None:
        """The offset of the image that a node had published before an event."""
        return self._images.latest(node, event)

    def applied_image_of(self, node: int, incarnation: str | None, at_ms: int) -> int | None:
        """The offset of the image that a broker had published some time before a moment."""
        return self._images.applied(node, incarnation, at_ms)

    def broker_at(self, broker: int, offset: int) -> CommittedBroker | None:
        """A broker as the metadata log has it at an offset."""
        return self._timeline.broker_at(broker, offset)

    def partition_at(self, place: Place, offset: int) -> CommittedPartition | None:
        """A partition as the metadata log has it at an offset."""
        return self._timeline.partition_at(*place, offset)

    def states_of(self, place: Place) -> Sequence[CommittedPartition]:
        """All states of a partition."""
        return self._timeline.partitions.get(place, ())
