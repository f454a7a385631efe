"""Rules of your own: ``minicluster verify RUN --rules-from examples/rules_of_your_own.py``."""

from minicluster.verify.rules.model import Check, Evidence, Rule, View


def fencings_of_brokers(rows):
    """The number of times that each broker was fenced, a fold over the rows of a view."""
    count = {}
    for row in rows("broker_states"):
        if row["flips"]:
            count[row["broker"]] = count.get(row["broker"], 0) + 1
            yield {"run": row["run"], "broker": row["broker"], "offset": row["offset"]} | {
                "number": count[row["broker"]],
                "topic": None,
                "part": None,
            }


VIEWS = (
    View(
        name="moves_of_leaders",
        sql="""select run, offset, topic, part, p_leader, leader, count(*) over (
          partition by run, topic_id, part order by offset) as moves
          from partition_states where change and leader <> p_leader""",
    ),
    View(
        name="fencings",
        fold=fencings_of_brokers,
        columns=("run", "broker", "offset", "number", "topic", "part"),
        reads=("broker_states",),
        key=("broker",),  # brokers have nothing to do with each other
    ),
)

RULES = (
    Rule(
        id="MY1",
        title="Leaders seldom move",
        statement="The leader of a partition moves at most twice in a run.",
        source="our own service level",
        evidence=Evidence.LOG,
        checks=(
            Check(
                view="moves_of_leaders",
                when="true",
                bad="moves > 2",
                message="leader {broker} is number {number}",
                broker="leader",
                number="moves",
            ),
        ),
    ),
    Rule(
        id="MY2",
        title="No broker is fenced again and again",
        statement="A broker is fenced at most three times in a run.",
        source="our own service level",
        evidence=Evidence.LOG,
        checks=(
            Check(
                view="fencings",
                when="true",
                bad="number > 3",
                message="broker {broker} was fenced for the {number}th time",
                broker="broker",
                number="number",
            ),
        ),
    ),
)
