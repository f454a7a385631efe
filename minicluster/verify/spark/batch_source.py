"""``spark.readStream.format("kraft-batches")``: the batches of a growing log, whole and in order.

Internal: ``findings_stream`` reads it.

Source:  pyspark.sql.datasource.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, InputPartition

from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.verify.spark.data_source import KraftStream, Piece, batches_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FORMAT = "kraft-batches"
_SCHEMA = pa.schema({"batch": pa.binary()})


class BatchSource(DataSource):
    """One controller's log as its batches."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> str:
        """One column."""
        return "batch binary"

    def streamReader(self, schema: StructType) -> BatchStream:
        """Follow the log as it grows."""
        return BatchStream(self.options["path"], (), DEFAULT_LIMITS)


class BatchStream(KraftStream):
    """A reader that follows one controller's log."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of a part of the log."""
        assert isinstance(partition, Piece)
        for batch in batches_of(partition, self._limits):
            yield pa.RecordBatch.from_pydict({"batch": [batch.encoded]}, schema=_SCHEMA)
