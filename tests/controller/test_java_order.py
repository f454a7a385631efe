"""The orders of Java's and Kafka's hash sets, as Java 17 and Kafka 4.3 print them."""

from __future__ import annotations

from uuid import UUID

import pytest

from minicluster.java_order import (
    concurrent_map_order,
    hash_map_order,
    java_set_order,
    persistent_map_order,
    scala_trie_order,
    string_hash,
    timeline_order,
    topic_id_partition_hash,
    topic_partition_hash,
)


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
    assert timeline_order(names.split(), string_hash) == order.split()


def test_a_timeline_hash_set_of_numbers() -> None:
    order = [13, 0, 18, 5, 10, 15, 20, 7, 12, 4, 17, 22, 1, 14, 6, 19, 11, 3, 8, 21]
    assert timeline_order([number * 7 % 23 for number in range(20)], int) == order


def test_a_trie_of_strings() -> None:
    names = (
        "t477-x t349 t882 t611-x t272-x t117 t534 t787-x t544-x t110-x t262-x t290 t474-x "
        "t894 t955-x t289-x t947-x t139 t754 t997 t5-x t718 t383 t603-x"
    )
    order = (
        "t5-x t955-x t289-x t349 t611-x t272-x t754 t894 t139 t117 t947-x t787-x t474-x "
        "t603-x t882 t718 t534 t262-x t997 t290 t544-x t110-x t477-x t383"
    )
    assert scala_trie_order(names.split(), string_hash) == order.split()


def test_a_concurrent_map_grows_before_a_hash_map() -> None:
    partitions = [("users", index) for index in range(12)]
    plain = [index for _, index in hash_map_order(partitions, topic_partition_hash)]
    concurrent = [index for _, index in concurrent_map_order(partitions, topic_partition_hash)]
    assert plain == [3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 1, 0]
    assert concurrent == [3, 2, 5, 4, 7, 6, 9, 8, 1, 0, 11, 10]


def test_the_hash_code_of_a_topic_id_and_a_partition() -> None:
    topic_id = UUID(int=0x123456789ABCDEF0FEDCBA9876543210)
    assert topic_id_partition_hash((topic_id, "orders", 3)) == (1 << 32) - 1_008_768_316


def test_a_persistent_map_of_strings() -> None:
    """As org.pcollections.HashTreePMap prints them: signed codes, the newer of two equal first."""
    put = ["orders", "topic-1", "pp", "d.e", "Aa", "BB", "none", "topic-0", "AaBB", "BBAa"]
    order = ["topic-0", "topic-1", "orders", "BB", "Aa", "pp", "d.e", "BBAa", "AaBB", "none"]
    assert persistent_map_order(put, string_hash) == order
