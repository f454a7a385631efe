"""A seed of each program that plays Kafka's own classes beside ours."""

from __future__ import annotations

import pytest

from tests.kafka.alter_partition.__main__ import main as alter_partition
from tests.kafka.controllers.__main__ import main as controllers
from tests.kafka.groups.__main__ import main as groups
from tests.kafka.jars import EARLIER_VERSION
from tests.kafka.partitions.__main__ import main as partitions
from tests.kafka.quorum.__main__ import main as quorum
from tests.kafka.side_by_side import SideBySide

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
EARLIER = ("--kafka", EARLIER_VERSION)
FEATURES = ("--features", "--operations", "150")
ELR = ("--elr", "--operations", "150")


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        pytest.param(groups, ("--operations", "100"), id="groups"),
        pytest.param(controllers, ELR, id="controllers-elr"),
        pytest.param(controllers, FEATURES, id="controllers-features"),
        pytest.param(
            controllers, (*EARLIER, "--metadata-version", "4.0-IV0", *ELR), id="controllers-3.9-elr"
        ),
        pytest.param(
            controllers,
            (*EARLIER, "--metadata-version", "3.9-IV0", *FEATURES),
            id="controllers-3.9-features",
        ),
        pytest.param(alter_partition, (), id="alter-partition"),
        pytest.param(alter_partition, EARLIER, id="alter-partition-3.9"),
        pytest.param(partitions, (), id="partitions"),
        pytest.param(partitions, EARLIER, id="partitions-3.9"),
        pytest.param(quorum, (), id="quorum"),
    ],
)
def test_a_seed_agrees(program: SideBySide, arguments: tuple[str, ...]) -> None:
    release = EARLIER_VERSION if arguments[:2] == EARLIER else program.releases[0]
    reason = program.missing(release)
    if reason is not None:
        pytest.skip(reason)
    assert program([*arguments, "--seeds", "1"]) == 0
