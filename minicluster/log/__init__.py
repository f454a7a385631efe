"""Kafka's log: batches, segments, checkpoints and the small files beside them.

Reads what Apache Kafka 3.3 to 4.3 wrote; what it writes, Kafka's own dump tool reads.
"""

from minicluster.log.batch import Record, RecordBatch, metadata_batch
from minicluster.log.control import ControlRecord, control_batch, control_records
from minicluster.log.errors import InvalidBatch, LogCorruption, LogError, NotALog
from minicluster.log.log import Log
from minicluster.log.records import Records

__all__ = [
    "ControlRecord",
    "InvalidBatch",
    "Log",
    "LogCorruption",
    "LogError",
    "NotALog",
    "Record",
    "RecordBatch",
    "Records",
    "control_batch",
    "control_records",
    "metadata_batch",
]
