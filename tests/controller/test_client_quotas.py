"""AlterClientQuotas: what Kafka's own ClientQuotaControlManager (4.3.0) does with the same."""

from __future__ import annotations

import math
from typing import Any

import pytest

from minicluster.protocol import messages as m
from tests.controller.kit import Cluster

Request = m.AlterClientQuotasRequest
Entry = Request.EntryData


def entry(*names: tuple[str, str | None], **values: float | None) -> Entry:
    """An entity, and new values of its quotas; None removes one."""
    return of_operations(names, tuple(values.items()))


def of_operations(
    names: tuple[tuple[str, str | None], ...], values: tuple[tuple[str, float | None], ...]
) -> Entry:
    """An entity with operations, of which several may have one key."""
    return Entry(
        entity=tuple(Request.EntityData(entity_type=k, entity_name=v) for k, v in names),
        ops=tuple(
            Request.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in values
        ),
    )


def alter(cluster: Cluster, *entries: Entry) -> tuple[list[Any], list[Any]]:
    """The results and the records of a request, in order."""
    first = cluster.end
    response = cluster.request(Request(entries=entries))
    results = [
        (tuple((e.entity_type, e.entity_name) for e in result.entity), result.error_message)
        for result in response.entries
    ]
    written: list[Any] = [cluster.log[offset].record for offset in range(first, cluster.end)]
    records = [
        (tuple((e.entity_type, e.entity_name) for e in record.entity), record.key, record.value)
        for record in written
    ]
    return results, records


def test_results_and_records_come_in_the_order_of_javas_hash_maps() -> None:
    results, records = alter(
        Cluster(),
        entry(
            ("user", "alice"),
            ("client-id", "app"),
            producer_byte_rate=1000.0,
            consumer_byte_rate=2000.0,
            request_percentage=50.0,
            controller_mutation_rate=3.0,
        ),
        entry(("client-id", "app"), consumer_byte_rate=5.0),
        entry(("user", None), producer_byte_rate=7.0),
        entry(("user", "bob"), producer_byte_rate=8.0),
        entry(("user", "carol"), producer_byte_rate=8.0),
    )
    both = (("client-id", "app"), ("user", "alice"))
    assert [names for names, _ in results] == [
        both,
        (("user", "bob"),),
        (("client-id", "app"),),
        (("user", None),),
        (("user", "carol"),),
    ]
    assert records == [
        (both, "producer_byte_rate", 1000.0),
        (both, "consumer_byte_rate", 2000.0),
        (both, "controller_mutation_rate", 3.0),
        (both, "request_percentage", 50.0),
        ((("client-id", "app"),), "consumer_byte_rate", 5.0),
        ((("user", None),), "producer_byte_rate", 7.0),
        ((("user", "bob"),), "producer_byte_rate", 8.0),
        ((("user", "carol"),), "producer_byte_rate", 8.0),
    ]


def test_an_entity_that_comes_twice_is_refused_but_its_first_change_is_made() -> None:
    alice = (("user", "alice"),)
    results, records = alter(
        Cluster(),
        entry(*alice, producer_byte_rate=1.0),
        entry(*alice, producer_byte_rate=2.0),
    )
    refusal = "Ignoring duplicate entity ClientQuotaEntity(entries={user=alice})"
    assert results == [(alice, refusal)]
    assert records == [(alice, "producer_byte_rate", 1.0)]


def test_a_key_that_comes_twice_changes_nothing() -> None:
    names = (("user", "alice"), ("client-id", None))
    twice = (("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0))
    results, records = alter(Cluster(), of_operations(names, twice))
    refusal = "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=null, user=alice})"
    assert results == [((("client-id", None), ("user", "alice")), refusal)]
    assert records == []


def test_the_first_bad_type_of_the_hash_map_names_the_error() -> None:
    results, _ = alter(
        Cluster(),
        entry(("foo", "x"), ("user", "")),
        entry(("user", "x"), ("foo", "")),
        entry(("user", "a"), ("user", "b"), request_percentage=1.5),
    )
    assert results == [
        ((("user", ""), ("foo", "x")), "Empty user not supported"),
        ((("user", "x"), ("foo", "")), "Unhandled client quota entity type: foo"),
        ((("user", "b"),), None),
    ]


ADDRESSES = {
    "1.2.3": True,
    "256.1.1.1": False,
    "a b": False,
    "::1": True,
    "[::1]": True,
    "1.2.3.4.5": False,
    "::1::": False,
    "1..2": False,
    "localhost": True,
    "RFC2606.invalid": False,
    None: True,
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_cannot_be_one_is_refused(address: str | None) -> None:
    results, records = alter(Cluster(), entry(("ip", address), connection_creation_rate=1.0))
    valid = ADDRESSES[address]
    refusal = None if valid else f"{address} is not a valid IP or resolvable host."
    assert results == [((("ip", address),), refusal)]
    assert len(records) == valid


RATES = {
    9223372036854775807.0: None,
    0.9999999: "producer_byte_rate cannot be a fractional value.",
    1.0000001: None,
    math.nan: None,
    math.inf: "Proposed value for producer_byte_rate is too large for a LONG.",
    1e300: "Proposed value for producer_byte_rate is too large for a LONG.",
    -0.0: "Quota producer_byte_rate must be greater than 0",
}


@pytest.mark.parametrize("rate", RATES)
def test_values_at_the_border(rate: float) -> None:
    results, records = alter(Cluster(), entry(("user", "v"), producer_byte_rate=rate))
    assert results == [((("user", "v"),), RATES[rate])]
    assert len(records) == (RATES[rate] is None)
