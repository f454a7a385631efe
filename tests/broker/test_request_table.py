"""A table by request finds its rows without the messages, and gives their classes when walked."""

from __future__ import annotations

import pytest

from minicluster.broker.request_table import RequestTable
from minicluster.protocol import messages as m


def test_a_row_is_found_by_the_class_of_a_request() -> None:
    table = RequestTable({"Fetch": 1, "Vote": 2})
    assert table[m.FetchRequest] == 1
    assert table.get(m.VoteRequest) == 2
    assert m.VoteResponse not in table
    assert m.ProduceRequest not in table
    assert list(table) == [m.FetchRequest, m.VoteRequest]


def test_a_name_that_no_api_has_is_found_by_a_walk() -> None:
    with pytest.raises(AttributeError, match="FetshRequest"):
        list(RequestTable({"Fetsh": 1}))
