"""The format ``kraft`` of any Spark session, which finds this module by the beginning of its name.

``minicluster.verify.register(spark)`` also lets filters be applied while reading, which a session
has to allow, and sends the package to executors that lack it.

Source:  pyspark.sql.worker.lookup_data_sources.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import DataSourceReader

from minicluster.verify.spark.data_source import KraftDataSource, KraftReader


class UnfilteredReader(KraftReader):
    """A reader that leaves filters to Spark."""

    pushFilters = DataSourceReader.pushFilters


class DefaultSource(KraftDataSource):
    """Kafka's metadata logs and checkpoints, in a session that was not prepared."""

    def reader(self, schema: Any) -> UnfilteredReader:
        """Read the files that are there now."""
        return self.reader_of(UnfilteredReader, schema)
