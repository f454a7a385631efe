"""Code that mypyc understands in another way is written in one that it understands."""

from __future__ import annotations

import ast

import pytest

from tests.compiled.differences import mend_differences

NETWORK = """
class Network:

    def detach(self, node: int, *, reset: bool=False) -> str:
        return f'{node} {reset}'

class ThreadedNetwork(Network):
    detach = one_at_a_time(Network.detach)
"""
ERRORS = """
def outcome(call: Any) -> str:
    try:
        return call()
    except KeyError as error:
        return f'no {error}'
    except ValueError as error:
        return str(error)
"""


def mended(text: str) -> str:
    tree = ast.parse(text)
    mend_differences(tree)
    return ast.unparse(ast.fix_missing_locations(tree))


def test_a_locked_method_is_written_out() -> None:
    text = mended(NETWORK)
    assert "one_at_a_time" not in text
    assert text.endswith(
        "    def detach(self, node: int, *, reset: bool=False) -> str:\n"
        "        with self.lock:\n"
        "            return super().detach(node, reset=reset)"
    )


def test_a_method_is_locked_where_it_is_written() -> None:
    with pytest.raises(SystemExit, match=r"Other\.detach is not written in the module"):
        mended(NETWORK.replace("one_at_a_time(Network", "one_at_a_time(Other"))


def test_errors_of_several_types_have_several_names() -> None:
    text = mended(ERRORS)
    assert "except KeyError as _error0_error:\n        return f'no {_error0_error}'" in text
    assert "except ValueError as _error1_error:\n        return str(_error1_error)" in text


def test_membership_among_unpacked_values_is_that_in_a_tuple() -> None:
    assert mended("found = one in (two, *others)") == "found = one in tuple((two, *others))"
    assert mended("found = one in (two, three)") == "found = one in (two, three)"
