"""The protocol's stories, as recorded text (``tests.quorum.story``)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.quorum.story import Story

STORIES = sorted((Path(__file__).parent / "stories").glob("*.txt"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_a_story_goes_as_it_was_recorded(path: Path) -> None:
    script = path.read_text()
    reported = Story().play(script)
    if os.environ.get("STORIES") == "rewrite":
        path.write_text(reported)
    assert reported == script
    assert len(script.splitlines()) <= 60


def test_there_is_a_story_of_each_part_of_the_protocol() -> None:
    assert {path.stem for path in STORIES} == {
        "check_quorum",
        "divergence",
        "election",
        "pre_vote",
        "snapshot_catch_up",
        "split_vote",
        "voter_added",
    }
