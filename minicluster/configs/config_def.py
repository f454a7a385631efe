"""Definitions of configs: types, validators, and how text becomes a value.

Source:  ConfigDef (parseType, convertToString, Range, ValidList, ValidString, …), ConfigException,
         ThrottledReplicaListValidator, ShareGroupAutoOffsetResetStrategy.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from minicluster import values
from minicluster.errors import MiniclusterError
from minicluster.protocol.error_codes import ErrorCode

Value = bool | int | float | str | list[str] | None

_COMMA = re.compile(r"\s*,\s*", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+")  # Java takes the digits of every script
_LAST_CHAR = "\uffff"  # and looks at single chars of UTF-16: none beyond these has a value
_MOST_DIGITS = len(str(1 << 63))
_WHITE = "".join(map(chr, range(33)))  # what String.trim removes
_FLOAT = re.compile(
    r"([+-]?)(NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?"
    r"|(0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?)"
)
_REPLICA = r"([0-9]+:[0-9]+)?"
_DURATION = r"(?i:P(?=.)([+-]?\d+D)?(T(?=.)([+-]?\d+H)?([+-]?\d+M)?([+-]?\d+([.,]\d{0,9})?S)?)?)"
_RANGES = {
    "INT": range(-(1 << 31), 1 << 31),
    "SHORT": range(-(1 << 15), 1 << 15),
    "LONG": range(-(1 << 63), 1 << 63),
}


class InvalidConfig(MiniclusterError):
    """A config that is rejected.

    Shapes:  error is that of Kafka's API exception; None: a plain ConfigException, which the
             controller reports as INVALID_CONFIG and a broker as INVALID_REQUEST.
    """

    def __init__(self, message: str, error: ErrorCode | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.error = error


def invalid_value(name: str, value: Any, why: str) -> InvalidConfig:
    """The refusal of one value, in the words of ConfigException."""
    return InvalidConfig(f"Invalid value {shown(value)} for configuration {name}: {why}")


def shown(value: Any) -> str:
    """A value as Java's string concatenation writes it."""
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return java_double(value) if isinstance(value, float) else str(value)


def java_double(value: float) -> str:
    """A double as Double.toString writes it."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value != 0 and not 1e-3 <= abs(value) < 1e7:
        mantissa, _, exponent = f"{value!r}".partition("e")
        if not exponent:
            mantissa, _, exponent = f"{value:.16e}".partition("e")
            mantissa = repr(float(mantissa))
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"
    return repr(value)


class ConfigKey(values.Value):
    """One config.

    Shapes:  type_: Kafka's name of it (INT, LIST, …); default None: there is none; dynamic:
             ``per-broker`` or ``cluster-wide``, None for a config that only a restart changes.
    """

    name: str
    type_: str
    default: str | None
    validator: Mapping[str, Any] | None
    documentation: str | None
    internal: bool = False
    required: bool = False
    dynamic: str | None = None

    @property
    def is_sensitive(self) -> bool:
        """Its value is shown to nobody."""
        return self.type_ == "PASSWORD"

    @property
    def limits(self) -> tuple[int, int] | None:
        """The least and the greatest whole number that it takes, None for another type."""
        if self.type_ not in _RANGES:
            return None
        of_type = _RANGES[self.type_]
        validator = self.validator or {}
        low, high = validator.get("min"), validator.get("max")
        return (
            of_type[0] if low is None else max(of_type[0], low),
            of_type[-1] if high is None else min(of_type[-1], high),
        )

    def parse(self, text: str | None) -> Value:
        """The value of a text, validated; what a list has twice is in it once.

        Errors:  InvalidConfig.
        Source:  ConfigDef.parseValue.
        """
        value = parse_type(self.name, text, self.type_)
        if self.validator is not None:
            if self.validator["kind"] == "list" and isinstance(value, list):
                value = list(dict.fromkeys(value))
            ensure_valid(self.name, value, self.validator)
        return value

    @property
    def default_value(self) -> Value:
        """The value of the default, to which no validator is applied."""
        return parse_type(self.name, self.default, self.type_)

    def normalized(self, text: str | None) -> str | None:
        """The text as Kafka writes the value of it."""
        return to_text(parse_type(self.name, text, self.type_))


class ConfigDef(values.Value):
    """The configs of one kind of resource, in the order in which Kafka checks them."""

    keys: Mapping[str, ConfigKey]

    def __contains__(self, name: object) -> bool:
        return name in self.keys

    def __iter__(self) -> Iterator[ConfigKey]:
        return iter(self.keys.values())

    def parse(self, texts: Mapping[str, str | None]) -> dict[str, Value]:
        """Every config's value: the given ones, else the default; others are passed over.

        Errors:  InvalidConfig for the first bad one, or a required one that is missing.
        """
        values: dict[str, Value] = {}
        for key in self:
            if key.name in texts:
                values[key.name] = key.parse(texts[key.name])
            elif key.required:
                raise InvalidConfig(
                    f'Missing required configuration "{key.name}" which has no default value.'
                )
            else:
                values[key.name] = key.default_value
        return values

    def is_list(self, name: str) -> bool:
        """Entries can be appended to it and subtracted from it."""
        return name in self.keys and self.keys[name].type_ == "LIST"


def parse_type(name: str, text: str | None, type_: str) -> Value:
    """The value of a text of this type; null is not a value.

    Errors:  InvalidConfig.
    """
    if text is None:
        return None
    trimmed = text.strip(_WHITE)
    match type_:
        case "BOOLEAN":
            if trimmed.lower() not in ("true", "false"):
                raise invalid_value(name, text, "Expected value to be either true or false")
            return trimmed.lower() == "true"
        case "INT" | "SHORT" | "LONG":
            number: float | None = _java_number(trimmed, type_)
        case "DOUBLE":
            number = _java_float(trimmed)
        case "LIST":
            return _COMMA.split(trimmed) if trimmed else []
        case _:
            return trimmed
    if number is None:
        raise invalid_value(name, text, f"Not a number of type {type_}")
    return number


def java_int(text: str) -> int | None:
    """The number of a text, or None where Java's Integer.parseInt rejects it."""
    return _java_number(text, "INT")


def _java_number(text: str, type_: str) -> int | None:
    """The number of a text, or None where Long.parseLong and its like reject it."""
    if not _INTEGER.fullmatch(text) or max(text) > _LAST_CHAR:
        return None
    sign, digits = ("-", text[1:]) if text[0] == "-" else ("", text.lstrip("+"))
    significant = "".join(str(unicodedata.decimal(digit)) for digit in digits).lstrip("0")
    if len(significant) > _MOST_DIGITS:
        return None  # Python reads no number of thousands of digits
    number = int(f"{sign}{significant or 0}")
    return number if number in _RANGES[type_] else None


def _java_float(text: str) -> float | None:
    """The number of a text, or None where Double.parseDouble rejects it."""
    match = _FLOAT.fullmatch(text)
    if match is None:
        return None
    sign, digits, in_hex = match.groups()
    number = float.fromhex(in_hex) if in_hex else float(digits.rstrip("fFdD"))
    return -number if sign == "-" else number


def java_split(text: str) -> list[str]:
    """The entries between commas; empty ones at the end do not count, but in an empty text."""
    return text.rstrip(",").split(",") if text.strip(",") or not text else []


def to_text(value: Value) -> str | None:
    """A value as Kafka writes it into a response."""
    if isinstance(value, list):
        return ",".join(value)
    return None if value is None else shown(value)


def ensure_valid(name: str, value: Value, validator: Mapping[str, Any]) -> None:
    """Apply a validator.

    Errors:  InvalidConfig.
    """
    match validator["kind"]:
        case "range":
            _ensure_in_range(name, value, validator["min"], validator["max"])
        case "list":
            _ensure_valid_list(name, value, validator)
        case "strings":
            if value not in validator["values"]:
                allowed = ", ".join(validator["values"])
                raise invalid_value(name, value, f"String must be one of: {allowed}")
        case "strings-any-case":
            if value is None or str(value).upper() not in validator["values"]:
                allowed = ", ".join(validator["values"])
                why = f"String must be one of (case insensitive): {allowed}"
                raise invalid_value(name, value, why)
        case "gzip-level":
            if not isinstance(value, int) or not (1 <= value <= 9 or value == -1):
                why = "Value must be between 1 and 9 or equal to -1"
                raise invalid_value(name, value, why)
        case "non-empty":
            if value == "":
                raise invalid_value(name, value, "String must be non-empty")
        case "non-null":
            if value is None:
                raise invalid_value(name, value, "entry must be non null")
        case "throttled-replicas":
            _ensure_throttled_replicas(name, value)
        case "offset-reset":
            _ensure_offset_reset(name, value)


def _ensure_in_range(name: str, value: Value, low: float | None, high: float | None) -> None:
    if value is None:
        raise invalid_value(name, value, "Value must be non-null")
    assert isinstance(value, (int, float))
    if low is not None and value < low:
        raise invalid_value(name, value, f"Value must be at least {shown(low)}")
    if high is not None and value > high:
        raise invalid_value(name, value, f"Value must be no more than {shown(high)}")


def _ensure_valid_list(name: str, value: Value, validator: Mapping[str, Any]) -> None:
    allowed = validator["values"]
    if value is None:
        if validator["null"]:
            return
        raise InvalidConfig(f"Configuration '{name}' values must not be null.")
    assert isinstance(value, list)
    if not value and not validator["empty"]:
        valid = f"[{', '.join(allowed)}]" if allowed else "any non-empty value"
        raise InvalidConfig(
            f"Configuration '{name}' must not be empty. Valid values include: {valid}"
        )
    for entry in value:
        if not entry:
            raise InvalidConfig(f"Configuration '{name}' values must not be empty.")
        if allowed and entry not in allowed:
            raise invalid_value(name, entry, f"String must be one of: {', '.join(allowed)}")


def _ensure_throttled_replicas(name: str, value: Value) -> None:
    assert isinstance(value, list)
    entries = [entry.strip() for entry in value]
    if "".join(entries) != "*" and not all(re.fullmatch(_REPLICA, entry) for entry in entries):
        why = (
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )
        raise invalid_value(name, value, why)


def _ensure_offset_reset(name: str, value: Value) -> None:
    text = str(value)
    duration = text.removeprefix("by_duration:")
    if text in ("earliest", "latest"):
        return
    if duration == text or not re.fullmatch(_DURATION, duration) or "-" in duration:
        why = (
            f"Invalid value `{text}` for configuration {name}. The value must be either "
            "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        )
        raise invalid_value(name, value, why)
