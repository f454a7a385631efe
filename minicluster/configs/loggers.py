"""The checks of changed log levels of a node (KIP-412).

Leaves out: the loggers themselves; the root logger is the only one that every node has.
Source:  RuntimeLoggerManager.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from minicluster.configs.config_def import InvalidConfig, java_int
from minicluster.protocol.error_codes import ErrorCode

_SET, _DELETE = 0, 1
_OF_LISTS = {2: "APPEND", 3: "SUBTRACT"}
_LEVELS = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")
_ROOT = "root"


def check_logger_changes(node_id: int, name: str, changes: Iterable[Any]) -> None:
    """Check the changes of a node's log levels, which come as IncrementalAlterConfigs has them.

    Errors:  InvalidConfig for another node's name, an unknown logger or level, an operation that
             loggers do not have; without a text, UNKNOWN_SERVER_ERROR, for an unknown operation.
    """
    wanted = java_int(name)
    if wanted is None:
        raise InvalidConfig(
            f"Node id must be an integer, but it is: {name}", ErrorCode.INVALID_REQUEST
        )
    if wanted != node_id:
        raise InvalidConfig(
            f"Unexpected node id. Expected {node_id}, but received {wanted}",
            ErrorCode.INVALID_REQUEST,
        )
    for change in changes:
        _check(change.name, change.config_operation, change.value)


def _check(logger: str, operation: int, level: str | None) -> None:
    if operation in _OF_LISTS:
        raise InvalidConfig(
            f"{_OF_LISTS[operation]} operation is not allowed for the BROKER_LOGGER resource",
            ErrorCode.INVALID_REQUEST,
        )
    if operation not in (_SET, _DELETE):
        # A null pointer in Kafka, which never reaches its own text for it; so there is none.
        raise InvalidConfig("", ErrorCode.UNKNOWN_SERVER_ERROR)
    if logger != _ROOT:
        raise InvalidConfig(f"Logger {logger} does not exist!", ErrorCode.INVALID_CONFIG)
    if operation == _DELETE:
        raise InvalidConfig(
            f"Removing the log level of the {_ROOT} logger is not allowed",
            ErrorCode.INVALID_REQUEST,
        )
    if level not in _LEVELS:
        raise InvalidConfig(
            f"Cannot set the log level of {logger} to {level} as it is not a supported log level. "
            f"Valid log levels are {', '.join(_LEVELS)}",
            ErrorCode.INVALID_CONFIG,
        )
