"""The response that carries one error about a whole request, for every API and version.

Source:  the getErrorResponse methods of Kafka's requests; ApiError.fromThrowable.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from minicluster.protocol.api import api_of
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.error_responses.texts import TEXTS
from minicluster.protocol.error_shape import NAMES, Each, ErrorShape, Text
from minicluster.protocol.schema import Message, Struct
from minicluster.protocol.versions import parse_versions
from minicluster.values import Value


class _Error(Value):
    code: int
    message: str | None
    version: int
    of_items: bool = False  # each item has it, whatever Kafka does where a request fails as a whole


def error_response(
    request: Message, error: ErrorCode, message: str | None = None, *, version: int
) -> Any:
    """The response to a request that failed as a whole, as this version carries it.

    Shapes:  message is the exception's own text, None where it has only the text of its code.
    """
    kind = type(request)
    api = api_of(kind)
    shape = ErrorShape() if api is None else api.error
    # The response stands beside its request, also where no release ever had them.
    name = kind.__name__.removesuffix("Request")
    response = getattr(sys.modules[kind.__module__], f"{name}Response")
    failure = _Error(error, message, version)
    values = {
        **_error_fields(response, failure, shape.text),
        **{field: getattr(request, of) for field, of in shape.copies.items()},
        **shape.values,
        **_arrays(response, (request,), shape.inside, failure),
    }
    return response(**_carried(response, values, version))


def error_items(request: Message, error: ErrorCode, *, version: int) -> Any:
    """The response in which each item of a request has an error, and the request as a whole none.

    Where a version has no place for the errors of items, its arrays are empty.
    """
    api = api_of(type(request))
    assert api is not None, f"{type(request).__name__} is not a client's"
    failure = _Error(error, None, version, of_items=True)
    arrays = _arrays(api.response, (request,), api.error.inside, failure)
    return api.response(**_carried(api.response, arrays, version))


def _arrays(
    kind: type[Struct], owners: tuple[Struct, ...], inside: Mapping[str, Each], error: _Error
) -> dict[str, tuple[Any, ...]]:
    structs = {spec.name: spec.struct for spec in kind.schema}
    arrays = {}
    for name, each in inside.items():
        struct = structs[name]
        assert struct is not None, f"{kind.__name__}.{name} holds no structures"
        if not error.of_items and error.version not in parse_versions(each.versions):
            continue
        items = [
            _item(struct, each, chain, error) for path in each.of for chain in _items(owners, path)
        ]
        if each.filled:
            items = [item for item in items if any(getattr(item, inner) for inner in each.inside)]
        arrays[name] = tuple(dict.fromkeys(items)) if each.distinct else tuple(items)
    return arrays


def _items(owners: tuple[Any, ...], path: str) -> Iterator[tuple[Any, ...]]:
    """The items at a path, each before the structures that hold it."""
    name, _, rest = path.partition(".")
    for item in getattr(owners[0], name) or ():
        chain = (item, *owners)
        yield from _items(chain, rest) if rest else (chain,)


def _item(kind: type[Struct], each: Each, chain: tuple[Any, ...], error: _Error) -> Any:
    values = _error_fields(kind, error, each.text)
    for spec in kind.schema:
        if spec.name in NAMES or spec.name in each.copies:
            values |= _copied(spec.name, each, chain, error.version)
    if not each.nulls:
        values = {name: value for name, value in values.items() if value is not None}
    if not isinstance(chain[0], Struct):
        values[each.plain] = chain[0]
    values |= each.values
    values |= _arrays(kind, chain, each.inside, error)
    return kind(**_carried(kind, values, error.version))


def _copied(name: str, each: Each, chain: tuple[Any, ...], version: int) -> dict[str, Any]:
    """A field of the request: of the item itself, else of the nearest structure that has it."""
    sources = {each.copies.get(name, name), name}
    for owner in chain:
        for spec in owner.schema if isinstance(owner, Struct) else ():
            if spec.name in sources and version in spec.versions:
                return {name: getattr(owner, spec.name)}
    return {}


def _error_fields(kind: type[Struct], error: _Error, text: Text) -> dict[str, Any]:
    values: dict[str, Any] = {}
    of_code = TEXTS.get(error.code)  # NONE has none
    # The text of an unexpected exception is for the node's log. A client could learn from it what
    # it must not know (ApiError.fromThrowable).
    is_generic = error.message == of_code or error.code == ErrorCode.UNKNOWN_SERVER_ERROR
    texts = {
        Text.GIVEN: None if is_generic else error.message,
        Text.OF_EXCEPTION: error.message or of_code,
        Text.OF_CODE: of_code,
    }
    for spec in kind.schema:
        if spec.name in ("error_code", "partition_error_code"):
            values[spec.name] = error.code
        elif spec.name == "error_message" and text in texts:
            values[spec.name] = texts[text]
    return values


def _carried(kind: type[Struct], values: Mapping[str, Any], version: int) -> dict[str, Any]:
    """The values that this version has a field for; its default where it carries no null."""
    specs = {spec.name: spec for spec in kind.schema if version in spec.versions}
    return {
        name: value
        for name, value in values.items()
        if name in specs and (value is not None or version in specs[name].nullable)
    }
