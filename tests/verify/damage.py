"""Logs of Kafka with something wrong in them, by chance: fields, records, batches, their order.

Offsets stay what they were, so that what is found is the damage and not what comes after it.
"""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any

from minicluster.log.batch import RecordBatch, metadata_batch
from minicluster.log.segment import segment_name, write_segment
from minicluster.protocol import records as r
from minicluster.protocol.errors import UnsupportedVersion
from minicluster.protocol.records import VersionedRecord
from minicluster.values import replace

NOTHING = VersionedRecord(r.NoOpRecord(), 0)
KINDS = ("field", "field", "field", "field", "lost", "again", "shuffled", "foreign", "moved")


class Damage:
    """One damaged copy of a log; ``done`` lists each damage and its place."""

    def __init__(self, batches: tuple[RecordBatch, ...], seed: str) -> None:
        self.rng = random.Random(seed)
        self.batches = batches
        self.records = {
            index: list(batch.metadata_records)
            for index, batch in enumerate(batches)
            if batch.metadata_records
        }
        self.every = [record for records in self.records.values() for record in records]
        self.done: list[str] = []
        for _ in range(self.rng.choice((1, 1, 2, 4))):
            self._damage(self.rng.choice(list(self.records)), self.rng.choice(KINDS))

    def write(self, folder: Path) -> None:
        """Write it as one controller's only segment."""
        home = folder / "__cluster_metadata-0"
        home.mkdir(parents=True)
        offset = self.batches[0].base_offset
        batches = []
        for index, batch in enumerate(self.batches):
            made = batch.with_base(offset, batch.leader_epoch)
            if index in self.records:
                made = metadata_batch(
                    offset, batch.leader_epoch, batch.max_timestamp, self.records[index]
                )
            batches.append(made)
            offset = made.next_offset
        write_segment(home / segment_name(batches[0].base_offset), batches)

    def _damage(self, index: int, kind: str) -> None:
        records, chance = self.records[index], self.rng
        place = chance.randrange(len(records))
        self.done.append(f"{kind} in batch {self.batches[index].base_offset}")
        if kind == "field":
            records[place] = self._another_field(records[place])
        elif kind == "lost":
            records[place] = NOTHING
        elif kind == "again":
            records[place] = chance.choice(records)
        elif kind == "shuffled":
            chance.shuffle(records)
        elif kind == "foreign":
            records[place] = chance.choice(self.every)
        else:
            other = chance.choice(list(self.records))
            self.records[index], self.records[other] = self.records[other], records

    def _another_field(self, record: VersionedRecord) -> VersionedRecord:
        message = record.record
        names = [field.name for field in dataclasses.fields(message)]
        if not names:
            return record
        name = self.rng.choice(names)
        others = [one.record for one in self.every if type(one.record) is type(message)]
        value = self._another(getattr(message, name), getattr(self.rng.choice(others), name))
        changed = VersionedRecord(replace(message, **{name: value}), record.version)
        try:
            r.encode_record(changed)
        except UnsupportedVersion:  # the record's version has no room for it
            return record
        return changed

    def _another(self, value: Any, of_another: Any) -> Any:
        chance = self.rng
        if chance.random() < 0.4 or value is None:
            return of_another
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return chance.choice((value + 1, max(0, value - 1), 0, -1))
        if isinstance(value, tuple) and value:
            shorter = value[1:] if chance.random() < 0.5 else value[:-1]
            return chance.choice((shorter, value[::-1], (*value, value[0]), ()))
        return of_another
