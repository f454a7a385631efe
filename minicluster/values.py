"""``dataclass`` for values: the standard library's, frozen for the type checker alone.

``@dataclass(frozen=True)`` says that an instance never changes, and mypy rejects an assignment. At
run time the standard library would see to it by ``object.__setattr__`` for each field of each new
instance, which took a tenth of a simulated second. So a frozen class is an ordinary one here that
compares and hashes by its fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, **options: Any) -> Any:
        """The decorator of the standard library; a frozen class may still be assigned to."""

        def declare(cls: type) -> type:
            by_fields = frozen and options.get("eq", True) and vars(cls).get("__hash__") is None
            return dataclasses.dataclass(cls, unsafe_hash=by_fields, **options)

        return declare if cls is None else declare(cls)
