"""One pass over the records of a batch that keeps only what decides whether to look closer.

A broker checks every record that a producer sends, and most batches are sound.

Source:  LogValidator.validateRecord.
"""

from __future__ import annotations

from minicluster.log.batch import RecordBatch
from minicluster.values import Value


class RecordScan(Value):
    """The facts about the records of a batch.

    Units:   timestamps in milliseconds; of the records, whatever the header has.
    Shapes:  are_consecutive: their offsets ascend by one from the base offset.
    """

    lowest_timestamp: int
    highest_timestamp: int
    all_have_keys: bool
    are_consecutive: bool


def scan(batch: RecordBatch) -> RecordScan:
    """Look through the records of a batch with at least one record.

    Errors:  InvalidBatch where the bytes do not hold the records that the header counts;
             UndecodableBatch where they cannot be unpacked.
    """
    times = []
    all_have_keys = are_consecutive = True
    for expected, (time_delta, offset_delta, key, _, _) in enumerate(batch.fields()):
        times.append(time_delta)
        if key is None:
            all_have_keys = False
        if offset_delta != expected:
            are_consecutive = False
    lowest, highest = batch.time_at(min(times)), batch.time_at(max(times))
    return RecordScan(lowest, highest, all_have_keys, are_consecutive)
