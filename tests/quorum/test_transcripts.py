"""Every step of Apache Kafka's own KRaft client, recorded, against the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcripts.quorum_player import play
from tests.transcripts.report import AGREE

FILES = sorted((Path(__file__).parent.parent / "data" / "quorum-transcripts").glob("*.jsonl.gz"))


def test_the_transcripts_are_here() -> None:
    assert len(FILES) == 15


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_the_machine_does_in_every_step_what_kafka_did(path: Path) -> None:
    outcomes = list(play(path))
    differing = [f"{o.where}: {o.detail}" for o in outcomes if o.verdict != AGREE]
    assert len(outcomes) >= 400
    assert not differing, "\n".join(differing[:3])
