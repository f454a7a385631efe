"""What every prefix of a committed log means: the hash of its fold at the end of each batch.

Nodes publish images with their hash; a rule compares the two.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image import MetadataImage, apply, apply_all
from minicluster.verify.inputs import Problem, Run
from minicluster.verify.operations import Operations
from minicluster.verify.rules.model import Evidence

IMAGE_SCHEMA = pa.schema(
    {
        "run": pa.string(),
        "offset": pa.int64(),  # the last one that the image holds
        "hash": pa.string(),  # null: inside a metadata transaction
    }
)


def image_rows(run: Run) -> tuple[list[dict[str, Any]], Problem | None]:
    """The hash after each batch, and a problem if a record does not fit the image before it."""
    image = MetadataImage.EMPTY
    rows: list[dict[str, Any]] = []
    skip_to = 0
    if not run.foldable:
        return rows, None
    try:
        if run.start is not None:
            skip_to = run.start.end_offset
            image = apply_all(image, run.start.records)
            rows.append({"run": run.name, "offset": skip_to - 1, "hash": image.digest()})
        cutter = Operations()
        for batch in run.committed:
            for operation in cutter.feed(batch):
                for entry in operation.entries:
                    if entry.offset >= skip_to:
                        image = apply(image, entry.record, offset=entry.offset)
            if batch.last_offset >= skip_to:
                told = None if cutter.waiting else image.digest()
                rows.append({"run": run.name, "offset": batch.last_offset, "hash": told})
    except ReplayError as error:
        return rows, Problem(evidence=Evidence.IMAGES, why=f"the log cannot be folded: {error}")
    return rows, None
