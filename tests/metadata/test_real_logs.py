"""Apache Kafka's own logs fold without an error, and to the images of its checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from minicluster.log.checkpoint import parse_checkpoint_name, read_checkpoint
from minicluster.log.directory import read_metadata_log
from minicluster.log.locating import locate
from minicluster.metadata.batch_loader import LoaderFault
from minicluster.metadata.bootstrap import activation_records, bootstrap_records
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.loader import MetadataLoader
from minicluster.metadata.metadata_version import MetadataVersion
from minicluster.metadata.snapshot import image_from_records, image_records
from minicluster.protocol.records import AbortTransactionRecord, RegisterBrokerRecord
from tests.metadata.committed_fold import CommittedFold, images_by_end_offset

LOGS = Path(__file__).parents[1] / "data" / "kafka-logs"
CONTROLLERS = sorted(path for path in LOGS.glob("*/controller-*"))
IDS = [f"{path.parent.name}-{path.name}" for path in CONTROLLERS]
MOST_CHECKPOINTS = {"cluster": 17, "cluster-3.3": 7, "migration-of-versions": 6, "trimmed": 18}
"""The checkpoints of the controller that has the most of them, by run."""


def checkpoints(controller: Path) -> dict[int, MetadataImage]:
    """Each checkpoint's image by its end offset."""
    images = {}
    for path in locate(controller).logs[0].checkpoints:
        snapshot_id = parse_checkpoint_name(path.name)
        assert snapshot_id is not None
        end_offset, _ = snapshot_id
        images[end_offset] = image_from_records(
            read_checkpoint(path).records, offset=end_offset - 1
        )
    return images


def prefixes(controller: Path) -> dict[int, MetadataImage]:
    """The image at the end of each batch; that of a trimmed log begins with its first snapshot."""
    batches = [placed.batch for placed in read_metadata_log(locate(controller).logs[0]).batches]
    first = batches[0].base_offset
    start, image = 0, MetadataImage.EMPTY
    if first > 0:
        start, image = min(
            (end, snapshot) for end, snapshot in checkpoints(controller).items() if end >= first
        )
    tail = [batch for batch in batches if batch.base_offset >= start]
    fold = CommittedFold.starting_from(image)
    return {start: image} | dict(images_by_end_offset(tail, fold))


@pytest.mark.parametrize("controller", CONTROLLERS, ids=IDS)
def test_a_checkpoint_is_the_fold_of_the_log_that_it_sums_up(controller: Path) -> None:
    images = prefixes(controller)
    for end_offset, snapshot in checkpoints(controller).items():
        assert images[end_offset] == snapshot, end_offset
        assert images[end_offset].digest() == snapshot.digest(), end_offset


def test_enough_checkpoints_are_looked_at() -> None:
    most: dict[str, int] = {}
    for controller in CONTROLLERS:
        run = controller.parent.name
        most[run] = max(most.get(run, 0), len(checkpoints(controller)))
    assert {run: most[run] for run in MOST_CHECKPOINTS} == MOST_CHECKPOINTS


@pytest.mark.parametrize("controller", CONTROLLERS, ids=IDS)
def test_our_snapshot_of_a_real_image_is_that_image(controller: Path) -> None:
    images = prefixes(controller)
    image = images[max(images)]
    again = image_from_records(image_records(image))
    assert again == image and again.digest() == image.digest()


@pytest.mark.parametrize("run", ["cluster", "cluster-3.3", "migration-of-versions"])
def test_our_snapshot_has_the_records_of_kafkas_in_the_same_sections(run: str) -> None:
    """Same records in the same versions; inside a section Kafka follows its hash maps."""
    files = locate(LOGS / run / "controller-101").logs[0]
    for path in files.checkpoints:
        theirs = read_checkpoint(path).records
        ours = tuple(image_records(image_from_records(theirs)))
        kinds = [type(versioned.record) for versioned in theirs]
        if RegisterBrokerRecord in kinds and run != "cluster-3.3":
            sections = [kind for i, kind in enumerate(kinds) if i == 0 or kinds[i - 1] != kind]
            mine = [type(versioned.record) for versioned in ours]
            assert list(dict.fromkeys(sections)) == list(dict.fromkeys(mine))
        if run == "cluster-3.3":  # it names the broker that got the last block of producer ids
            continue
        assert sorted(map(_normal, ours)) == sorted(map(_normal, theirs)), path.name


def _normal(versioned: object) -> str:
    """A record without the order of a map that it was written from."""
    record = versioned.record  # type: ignore[attr-defined]
    lists = {
        name: sorted(map(repr, getattr(record, name)))
        for name in ("end_points", "features")
        if hasattr(record, name)
    }
    text = repr(versioned)
    for name in lists:
        text = text.replace(repr(getattr(record, name)), "")
    return text + json.dumps(lists)


@pytest.mark.parametrize("controller", CONTROLLERS, ids=IDS)
def test_the_loader_publishes_the_fold_without_a_fault(controller: Path) -> None:
    images = prefixes(controller)
    start = min(images)
    end = max(images)
    loader = MetadataLoader()
    effects = loader.install(["cache"], high_watermark=end, now_ms=0)
    if start > 0:
        effects += loader.on_load_snapshot(
            (start, 0),
            tuple(image_records(images[start])),
            last_contained_log_timestamp=0,
            high_watermark=end,
            now_ms=0,
        )
    for placed in read_metadata_log(locate(controller).logs[0]).batches:
        if placed.batch.base_offset >= start:
            effects += loader.on_commit([placed.batch], high_watermark=end, now_ms=0)
            assert loader.image == images[placed.batch.next_offset]
    assert not [effect for effect in effects if isinstance(effect, LoaderFault)]
    assert loader.last_applied_offset == end - 1


@pytest.mark.parametrize(
    ("run", "level", "features"),
    [
        ("smoke", 30, None),
        ("jbod", 30, None),
        ("divergent", 30, None),
        ("migration-of-versions", 7, {}),
        ("cluster-3.3", 7, {}),
    ],
)
def test_our_bootstrap_records_are_those_that_kafka_wrote_and_replayed(
    run: str, level: int, features: dict[str, int] | None
) -> None:
    controller = next(path for path in CONTROLLERS if path.parent.name == run)
    files = locate(controller).logs[0]
    assert files.bootstrap is not None
    written: Any = read_checkpoint(files.bootstrap).records
    if run in ("jbod", "divergent"):
        features = {v.record.name: v.record.feature_level for v in written[1:]}
    ours = bootstrap_records(MetadataVersion(level), features)
    assert ours == written
    activation = activation_records(
        MetadataImage.EMPTY,
        log_is_empty=True,
        transaction_is_open=False,
        bootstrap=written,
        static_min_insync_replicas=1,
    )
    in_log = [
        versioned
        for placed in read_metadata_log(files).batches
        for versioned in placed.batch.metadata_records
    ]
    assert list(activation.records) == in_log[: len(activation.records)]
    assert activation.atomic is (level < 13)
    assert not any(isinstance(v.record, AbortTransactionRecord) for v in activation.records)
