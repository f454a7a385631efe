"""Beginnings that several stories about traces share."""

from __future__ import annotations

import json
from pathlib import Path

from minicluster.log.checkpoint import Snapshot, checkpoint_name, encode_snapshot
from minicluster.metadata.image.metadata_image import MetadataImage, apply_all
from minicluster.metadata.snapshot import image_records
from minicluster.protocol import records as r
from tests.verify.build import OTHER_TOPIC, LogBuilder, change, cluster
from tests.verify.build_run import RunBuilder

EVERYBODY = {"isr": [1, 2, 3], "maximal_isr": [1, 2, 3], "min_isr": 2}


def plain_run(**header: object) -> RunBuilder:
    return RunBuilder(cluster(), **header)


def as_json(value: object) -> str:
    return json.dumps(value)


def pending(run: RunBuilder, maximal: list[int], **values: object) -> RunBuilder:
    known = {2: (9, 0, 5), 3: (9, 0, 5)}
    given = {"isr": [1, 2], "maximal_isr": maximal, "known": known, "hw_new": 8, "leo": 9}
    return run.partition("isr_pending", **{**given, **values})


def watermark(isr: list[int], *, old: int = 0, new: int = 8) -> RunBuilder:
    return plain_run().partition(
        "hw",
        isr=isr,
        maximal_isr=isr,
        min_isr=2,
        leo=8,
        hw_old=old,
        hw_new=new,
        known={2: (8, 0, 5), 3: (8, 0, 5)},
    )


def cut_log(log: LogBuilder, *, keep_from: int) -> LogBuilder:
    log.batches = log.batches[keep_from:]
    return log


class WithSnapshot(RunBuilder):
    """A run whose controller has a snapshot of the first batches of its log."""

    def __init__(
        self,
        *,
        batches: int,
        kept: int = 0,
        name_epoch: int = 1,
        lie: bool = False,
        late_ms: int = 0,
        configured: str | None = None,
    ):
        log = cluster().op(change((1, 2)))
        super().__init__(log)
        image = MetadataImage.EMPTY
        for batch in log.batches[:batches]:
            image = apply_all(image, batch.metadata_records, base_offset=batch.base_offset)
        records = [*image_records(image)]
        if lie:
            records.append(r.VersionedRecord(r.TopicRecord(name="x", topic_id=OTHER_TOPIC), 0))
        if configured is not None:
            record = r.ConfigRecord(resource_type=2, resource_name=configured, name="a", value="b")
            records.append(r.VersionedRecord(record, 0))
        last = log.batches[batches - 1]
        end = last.next_offset
        self.name = checkpoint_name((end, name_epoch))
        self.snapshot = Snapshot(
            records=tuple(records), last_contained_log_timestamp=last.max_timestamp + late_ms
        )
        cut_log(log, keep_from=kept)

    def write(self, folder: Path) -> Path:
        super().write(folder)
        content = encode_snapshot(self.snapshot, epoch=1, timestamp_ms=0)
        home = folder / "controller-101" / "__cluster_metadata-0"
        (home / self.name).write_bytes(content)
        return folder
