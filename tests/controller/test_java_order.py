"""The orders of Java's and Kafka's hash sets, as Java 17 and Kafka 4.3 print them."""

from __future__ import annotations

import pytest

from minicluster.java_order import TimelineHashOrder, hash_map_order, java_set_order, string_hash


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("a", 97),
        ("kafka", 101_807_910),
        ("a.b_c", 91_049_145),
        ("topic-1", 3_155_706_643),
        ("ä😀", 1_992_007),
    ],
)
def test_the_hash_code_of_a_string(text: str, code: int) -> None:
    assert string_hash(text) == code


def test_a_hash_set_of_numbers() -> None:
    assert java_set_order((16, 1, 33, 2, 17)) == [16, 1, 33, 17, 2]


def test_a_hash_map_of_strings() -> None:
    names = [f"rack{number}" for number in range(14)]
    order = [3, 4, 5, 6, 0, 1, 2, 7, 13, 8, 12, 9, 11, 10]
    assert hash_map_order(names, string_hash) == [f"rack{number}" for number in order]


@pytest.mark.parametrize(
    ("names", "order"),
    [
        ("a.b.c a_b.c", "a_b.c a.b.c"),
        ("q.r_s q_r.s q.r.s", "q.r.s q_r.s q.r_s"),
        (
            "n1. n2. n3. n4. n5. n6. n7. n8. n9.",
            "n4. n5. n6. n7. n1. n8. n9. n2. n3.",
        ),
    ],
)
def test_a_timeline_hash_set_of_strings(names: str, order: str) -> None:
    found: TimelineHashOrder[str] = TimelineHashOrder(string_hash)
    for name in names.split():
        found.put(name)
    assert list(found) == order.split()
    found.remove(names.split()[0])
    assert list(found) == [name for name in order.split() if name != names.split()[0]]


def test_a_timeline_hash_set_of_numbers() -> None:
    found: TimelineHashOrder[int] = TimelineHashOrder(int)
    for number in range(20):
        found.put(number * 7 % 23)
    order = [13, 0, 18, 5, 10, 15, 20, 7, 12, 4, 17, 22, 1, 14, 6, 19, 11, 3, 8, 21]
    assert list(found) == order
