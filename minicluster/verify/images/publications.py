"""The images that nodes publish, beside the fold of the committed log.

subject   a node: the images that it publishes, each with the quorum's high watermark before it
keeps     by process, the image that it published last, and whether it has loaded a snapshot
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.values import Value
from minicluster.verify.histories.traced_run import Row
from minicluster.verify.model import Evidence
from minicluster.verify.rules.rule import CASE, Findings, Said, broken, exempt, rule

SNAPSHOT = "snapshot"  # the manifest of an image that was read from one
_NO_FOLD = "the log up to the image cannot be folded, or the trace has no digest of the image"


class LogOfRun(Value):
    """The images with which publications are compared.

    Shapes:  digests: of the fold at the end of each batch, None inside a metadata transaction.
             may_be_empty: nodes of its release publish empty images.
    Units:   first: the first offset at which the log, as far as it is kept, can be folded.
    """

    digests: Mapping[int, str | None]
    first: int
    may_be_empty: bool


class Publication:
    """A node publishes an image; columns of ``publish``, and the high watermark by then."""

    __slots__ = (
        "broker", "digest", "high_watermark", "in_transaction", "incarnation", "manifest",
        "offset", "seq",
    )  # fmt: skip
    topic, part = "", -1  # of no partition

    def __init__(self, row: Row, high_watermark: int | None) -> None:
        cell: Callable[[str], Any] = row.get
        self.seq: int = row["seq"]
        self.broker: int = row["node"]
        self.incarnation: str | None = cell("incarnation")
        self.offset: int = row["offset"]
        self.digest: str | None = cell("image_hash")
        self.manifest: str | None = cell("manifest")
        self.in_transaction = bool(cell("in_tx"))
        self.high_watermark = high_watermark


class Publisher:
    """A process of a node; offset: of the image that it published last."""

    def __init__(self) -> None:
        self.offset: int | None = None
        self.has_loaded_snapshot = False


class Publications:
    """The images of all nodes."""

    def __init__(self, log: LogOfRun) -> None:
        self.log = log
        self.publishers: dict[tuple[int, str | None], Publisher] = defaultdict(Publisher)

    def on_event(self, image: Publication) -> Said:
        """A node publishes an image."""
        publisher = self.publishers[image.broker, image.incarnation]
        # The image of a snapshot that the log, as far as it is kept, has led to.
        if image.manifest == SNAPSHOT and image.offset > self.log.first:
            publisher.has_loaded_snapshot = True
        yield from images_are_folds_of_the_log(self.log, publisher, image)
        yield from images_are_published_in_order(self.log, publisher, image)
        publisher.offset = image.offset


@rule("E32", "Published images are folds of the log",
      source="KIP-631, KIP-630, KAFKA-13357, KAFKA-16892; MetadataLoader",
      at_end=True, evidence=Evidence.IMAGES, tables=("publish",),
      breaks="Broker 2 publishes an image that is not the fold of the log.",
      keeps="A metadata transaction is aborted, and broker 2 publishes an image "
      "without its records.")  # fmt: skip
def images_are_folds_of_the_log(
    log: LogOfRun, publisher: Publisher, image: Publication
) -> Findings:
    """The image that a node publishes at an offset is the fold of the committed log up to that
    offset, also where the node has loaded a snapshot and the rest of the log."""
    fold = log.digests.get(image.offset)
    if fold is None or image.digest is None:
        yield exempt(_NO_FOLD)
        return
    yield CASE
    if image.digest != fold:
        loaded = ", which has loaded a snapshot," if publisher.has_loaded_snapshot else ""
        yield broken(
            f"node {image.broker}{loaded} published an image that differs from the fold of the log",
            image,
            offset=image.offset,
        )


@rule("E33", "Images are published in order, at committed batch ends",
      source="KAFKA-15389, KAFKA-17713; MetadataLoader.maybePublishMetadata",
      at_end=True, evidence=Evidence.IMAGES, tables=("publish", "raft_event"),
      breaks="Broker 2 publishes an image, and then an older one.",
      keeps="A new incarnation of broker 2 begins with an older image, and broker 3 "
      "has its own pace.")  # fmt: skip
def images_are_published_in_order(
    log: LogOfRun, publisher: Publisher, image: Publication
) -> Findings:
    """Each incarnation publishes images in order, at the end of a committed batch, never past the
    high watermark, never inside a metadata transaction, and never an empty one."""
    node, offset = f"node {image.broker}", image.offset
    yield CASE
    if publisher.offset is not None and offset < publisher.offset:
        yield broken(f"{node} published an older image than before", image, offset=offset)
    is_folded, ends_a_batch = offset >= log.first, offset in log.digests
    if is_folded and not ends_a_batch:
        where = "an offset that is not the end of a committed batch"
        yield broken(f"{node} published at {where}", image, offset=offset)
    mark = image.high_watermark
    if mark is not None and offset >= mark:
        yield broken(f"{node} published past the high watermark {mark}", image, offset=offset)
    is_open = is_folded and ends_a_batch and log.digests[offset] is None
    # With 3.9 an empty snapshot counts as a record, and its empty image is published (KAFKA-17713).
    is_empty = offset < 0 or (image.digest == _EMPTY and not log.may_be_empty)
    if is_empty or image.in_transaction or is_open:
        what = "an empty image or one inside a transaction"
        yield broken(f"{node} published {what}", image, offset=offset)


_EMPTY = MetadataImage.EMPTY.digest()
