"""Values: msgspec's structs, which are made, compared, hashed and copied without Python code.

::

    class Voter(Value):
        id: int
        directory_id: UUID

A value never changes, and equal ones are one key. What changes is a ``msgspec.Struct``. A class
whose fields are told apart, by metadata or in comparisons, is a ``dataclass``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, dataclass_transform

from msgspec import Struct, field, structs

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass

    # A type checker knows the fields that this one may be given.
    from dataclasses import replace as replace
else:
    import dataclasses

    def replace(value: Any, /, **changed: Any) -> Any:
        """A copy of a value with other fields, of either kind: each library's takes its own."""
        of = structs.replace if isinstance(value, Struct) else dataclasses.replace
        return of(value, **changed)

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, **options: Any) -> Any:
        """The decorator of the standard library; a frozen class may still be assigned to.

        It would see to that by ``object.__setattr__`` for each field of each new instance.
        """

        def declare(cls: type) -> type:
            by_fields = frozen and options.get("eq", True) and vars(cls).get("__hash__") is None
            return dataclasses.dataclass(cls, unsafe_hash=by_fields, **options)

        return declare if cls is None else declare(cls)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Value(Struct, frozen=True):
    """The base of values."""
