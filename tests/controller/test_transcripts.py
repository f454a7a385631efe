"""Every operation of the recorded transcripts agrees with Kafka, whatever the release."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from minicluster.rules import Rules
from minicluster.values import replace
from tests.transcripts.__main__ import main
from tests.transcripts.controller_player import play
from tests.transcripts.report import DIFFER, HASH_ORDER, NOT_BUILT, Tally

DATA = Path(__file__).parents[1] / "data" / "controller-transcripts"
FILES = sorted(DATA.glob("*.jsonl.gz"))


def tally_of(*paths: Path, rules: Rules | None = None, show: int = 3) -> Tally:
    tally = Tally()
    for path in paths:
        tally.add(play(path, rules), show)
    return tally


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".jsonl.gz"))
def test_every_operation_agrees(path: Path) -> None:
    tally = tally_of(path)
    assert tally.total(DIFFER) == 0, tally.as_text()
    assert tally.total(NOT_BUILT) == tally.total(HASH_ORDER) == 0
    assert tally.counts["final_state"]["agree"] == 1
    with gzip.open(path) as lines:
        assert (
            sum(map(sum, (row.values() for row in tally.counts.values())))
            == len(lines.readlines()) - 1
        )


@pytest.mark.parametrize(
    ("bug", "operation", "seed"),
    [
        ("fenced_broker_holds_session", "register_broker", 26),
        ("fenced_broker_is_fenced_again", "maybe_fence_stale_brokers", 26),
        ("unregistered_broker_stays_in_elr", "unregister_broker", 25),
        ("clear_elr_ignores_empty_isr", "incremental_alter_configs", 26),
        ("clear_elr_skips_index", "register_broker", 18),
        ("removed_replica_stays_in_elr", "alter_partition_reassignments", 18),
        ("last_offline_dir_is_kept", "broker_heartbeat", 26),
        ("reassignment_keeps_old_lists", "alter_partition_reassignments", 20),
    ],
)
def test_mending_a_bug_shows_as_a_difference_of_its_operation(
    bug: str, operation: str, seed: int
) -> None:
    rules = replace(Rules.KAFKA_4_3.as_shipped(), **{bug: False})  # type: ignore[arg-type]
    tally = tally_of(*DATA.glob(f"kafka-4.3.0-*-seed-{seed}.jsonl.gz"), rules=rules)
    assert tally.counts[operation]["differ"] > 0


def test_the_rules_of_another_release_do_not_agree() -> None:
    path = next(path for path in FILES if "kafka-4.3" in path.name)
    assert tally_of(path, rules=Rules.KAFKA_3_9.as_shipped()).total(DIFFER) > 0


def test_a_changed_response_is_found_and_shown(tmp_path: Path) -> None:
    lines = gzip.decompress(FILES[-1].read_bytes()).decode().splitlines()
    at = next(i for i, line in enumerate(lines) if '"op":"alter_partition"' in line)
    changed = json.loads(lines[at])
    changed["response"][0]["partition_index"] += 1
    lines[at] = json.dumps(changed)
    path = tmp_path / "changed.jsonl"
    path.write_text("\n".join(lines))
    tally = tally_of(path)
    assert tally.total(DIFFER) == 1
    assert tally.shown[0].operation == "alter_partition"
    assert main(["controller", str(path)]) == 1


def test_the_command_counts_per_operation_as_data() -> None:
    command = [sys.executable, "-m", "tests.transcripts", "controller", "--format", "json"]
    done = subprocess.run([*command, str(FILES[0])], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert report["all"]["agree"] == 801
    assert report["all"]["differ"] == 0
    assert report["operations"]["final_state"]["agree"] == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        (b"", "empty"),
        (b"\x1f\x8b\x00", "gzip"),
        (b"\xff\xfe\x00", "neither a text nor"),
        (b"not json\n", "line 1 is not JSON"),
        (b"[1]\n", "line 1 is no JSON object"),
        (b'{"a": 1}\n', "no controller transcript"),
    ],
)
def test_a_bad_file_gets_one_clear_line(
    content: bytes | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.jsonl.gz"
    if content is not None:
        path.write_bytes(content)
    assert main(["controller", str(path)]) == 64
    message = capsys.readouterr().err
    assert words in message and str(path) in message and message.count("\n") == 1
