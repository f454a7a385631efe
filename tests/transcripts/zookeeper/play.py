"""``python -m tests.transcripts zookeeper DIR…``: all comparisons of a run.

Kinds:  text (a znode's bytes), write (a transaction of a controller), response and probe (of a
        controller), LeaderAndIsr, StopReplica and UpdateMetadata as they were sent; admin (the
        writes and the responses of the broker that serves an administrator).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.transcripts.report import Outcome
from tests.transcripts.zookeeper.administration import compare_administration
from tests.transcripts.zookeeper.broker_responses import compare_broker_responses
from tests.transcripts.zookeeper.player import Player, compare_responses
from tests.transcripts.zookeeper.recording import load
from tests.transcripts.zookeeper.sent_requests import compare_sent
from tests.transcripts.zookeeper.znode_texts import compare_texts


def play(path: Path) -> Iterator[Outcome]:
    """The outcomes of one run."""
    recording = load(path)
    yield from compare_texts(recording)
    player = Player(recording)
    yield from player.play()
    yield from compare_responses(player)
    yield from compare_sent(player.all_controllers, recording)
    yield from compare_broker_responses(recording)
    yield from compare_administration(recording)
