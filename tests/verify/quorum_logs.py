"""Logs of several controllers: copies that differ by chance, and damage in their bytes."""

from __future__ import annotations

import random
from pathlib import Path

from crc32c import crc32c

from minicluster.log import heads
from minicluster.log.batch import CRC_START, HEADER_BYTES, RecordBatch
from minicluster.log.segment import segment_name, write_segment

HOME = "__cluster_metadata-0"


def write(folder: Path, logs: list[list[RecordBatch]]) -> Path:
    """The logs of controllers, from 1 on."""
    for number, batches in enumerate(logs, 1):
        home = folder / f"controller-{number}" / HOME
        home.mkdir(parents=True)
        write_segment(home / segment_name(batches[0].base_offset), batches)
    return folder


def changed(batches: list[RecordBatch], chance: random.Random) -> list[RecordBatch]:
    """A controller's copy: its tail is not there yet, it is of another leader, a batch is lost."""
    kind, found = chance.choice(("end", "end", "tail", "lost", "same")), list(batches)
    place = chance.randrange(len(found) // 2, len(found))
    if kind == "end":
        del found[place:]
    elif kind == "tail":
        epoch = found[-1].leader_epoch + chance.randrange(3)
        found[place:] = [one.with_base(one.base_offset, epoch) for one in found[place:]]
    elif kind == "lost":
        del found[place]
    if chance.random() < 0.3:  # retention: the log begins later
        del found[: chance.randrange(1, 4)]
    return found


def damage_bytes(segment: Path, chance: random.Random) -> None:
    """A flipped byte, a lost tail, zeros, or a record that does not decode under its checksum."""
    content = bytearray(segment.read_bytes())
    kind = chance.choice(("flip", "flip", "head", "tail", "zeros", "record", "record", "text"))
    place = chance.randrange(len(content))
    if kind == "flip":
        content[place] ^= 255
    elif kind == "head":
        content[chance.randrange(30)] ^= 255
    elif kind == "tail":
        del content[place:]
    elif kind == "zeros":
        content += bytes(100)
    elif kind == "text":
        content[:] = b"no log"
    else:
        heads_of = list(heads.batch_heads(segment))
        head = chance.choice(heads_of)
        batch = RecordBatch.decode(bytes(content), head.position)
        bad = bytearray(batch.encoded)
        bad[chance.randrange(HEADER_BYTES, len(bad))] ^= 255
        bad[CRC_START - 4 : CRC_START] = crc32c(bytes(bad[CRC_START:])).to_bytes(4, "big")
        content[head.position : head.end] = bad
    segment.write_bytes(content)
