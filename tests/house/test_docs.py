"""The pages in docs/ agree with the code; ``make docs`` writes them again."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from docs.generate import conformance, coverage
from docs.generate.kips import TITLES
from docs.generate.pages import DOCS, differing_parts, table, with_parts
from docs.generate.short_table import as_property
from docs.generate.write_docs import PAGES
from minicluster import MiniCluster
from minicluster.broker.kafka_apis import APIS
from minicluster.cli import app
from minicluster.scenario import ACTIONS, parse_scenario
from minicluster.scenario.expression import parse
from minicluster.scenario.functions import FUNCTIONS, NAMED_SETS, TEXTS

ROOT = Path(__file__).resolve().parents[2]
CLUSTER_TESTS = ROOT / "tests" / "kafka" / "cluster_tests" / "classes.yaml"
QUICK = {name: parts for name, parts in PAGES.items() if name != "reference/conformance.md"}


@pytest.mark.parametrize("name", QUICK)
def test_a_page_is_up_to_date(name: str) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")
    assert not differing_parts(page, QUICK[name]()), f"docs/{name}: run `make docs`"


@pytest.mark.slow
def test_the_conformance_page_is_up_to_date_and_nothing_differs(
    record_property: Callable[[str, object], None],
) -> None:
    """That nothing differs, the tests of each kind of recording say as well, file by file."""
    measured = conformance.measure()
    record_property("conformance", as_property(measured.lines))
    assert [line for line in measured.lines if line.differ or line.not_built] == []
    page = (DOCS / "reference/conformance.md").read_text(encoding="utf-8")
    assert not differing_parts(page, measured.parts), (
        "docs/reference/conformance.md: run `make docs`"
    )


def test_a_change_of_a_generated_part_shows_and_writing_it_again_mends_it() -> None:
    page = "by hand\n<!-- generated: a -->\n<!-- end -->\nmore\n<!-- generated: b -->\n<!-- end -->"
    parts = {"a": "one", "b": table(("x", "n"), [("y|z", 1234)])}
    written = with_parts(page, parts)
    assert differing_parts(page, parts) == ["a", "b"]
    assert differing_parts(written, parts) == []
    assert "| y\\|z | 1,234 |" in written and written.startswith("by hand\n")
    assert differing_parts(written.replace("one", "two"), parts) == ["a"]
    assert with_parts(written.replace("one", "two"), parts) == written
    assert differing_parts(written, {**parts, "c": "new"}) == ["c"]
    assert with_parts(written, {**parts, "c": "new"}).endswith(
        "\n\n## c\n\n<!-- generated: c -->\n\nnew\n\n<!-- end -->\n"
    )
    with pytest.raises(ValueError, match="parts"):
        with_parts(page, {"a": ""})


def test_every_selector_is_described_once_and_as_it_is_written() -> None:
    names = [re.match(r"\w+", form)[0] for form in TEXTS]  # type: ignore[index]
    assert sorted(names) == sorted([*FUNCTIONS, *NAMED_SETS])
    for form in TEXTS:
        parse(form)


def test_every_action_is_a_method_of_the_cluster() -> None:
    for name, action in ACTIONS.items():  # of scenarios alone: run_for and wait_until, in a test
        assert action.of_scenarios != hasattr(MiniCluster, name), name


def test_the_scenario_on_the_page_is_one() -> None:
    text, steps = re.findall(r"```yaml\n(.*?)```", (DOCS / "scenarios.md").read_text(), re.S)
    scenario = parse_scenario(text)
    assert scenario.faults == ("S11",) and len(scenario.steps) == 6
    assert len(parse_scenario(f"steps:\n{steps}").steps) == 5


def test_every_kip_that_is_cited_has_a_title() -> None:
    unknown = sorted(set(coverage.cited_kips()) - set(TITLES))
    assert not unknown, f"docs/generate/kips.py: no title for {unknown}"


def test_an_api_that_is_called_served_in_part_is_served() -> None:
    apis = (DOCS / "reference/coverage.md").read_text(encoding="utf-8")
    for name in coverage.SERVED_IN_PART:
        assert re.search(rf"^\| \d+ \| {name} \|.*\| partly \|", apis, re.M), name
    assert len(APIS) >= 20


def test_the_readme_shows_commands_that_exist() -> None:
    shown = re.findall(r"^minicluster ([\w-]+)", (ROOT / "README.md").read_text(), re.M)
    known = {name for name, command in app.commands.items() if not command.hidden}
    assert shown and set(shown) <= known


def test_the_pages_link_to_files_that_exist() -> None:
    pages = [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]
    for page in pages:
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_page_of_clients_counts_the_tests_of_apache_kafka_that_are_listed() -> None:
    listed = yaml.safe_load(CLUSTER_TESTS.read_text(encoding="utf-8"))
    page = " ".join((DOCS / "reference" / "clients.md").read_text(encoding="utf-8").split())
    assert f"plays {len(listed)} classes of Apache Kafka's own tests" in page
    holds = sum(each["holds"] for each in listed.values())
    assert f"{holds} tests hold" in page
    section = page.partition("## Apache Kafka's own tests")[2].partition("## ")[0]
    assert holds == sum(map(int, re.findall(r"\| (\d+) \|", section)))
