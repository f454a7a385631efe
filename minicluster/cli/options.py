"""Options that several commands have."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from minicluster.errors import UserError
from minicluster.log.format.limits import MAX_BATCH_BYTES, MAX_DECOMPRESSED_BYTES, ReadLimits

TEXT, JSON = "text", "json"

path_type = click.Path(path_type=Path)
runs_option = click.option(
    "--runs",
    type=path_type,
    default=Path("runs"),
    show_default=True,
    help="Folder in which the run leaves its own folder.",
)
format_option = click.option(
    "--format",
    "form",
    type=click.Choice([TEXT, JSON]),
    default=TEXT,
    show_default=True,
    help="For people or for programs.",
)
junit_option = click.option(
    "--junit", type=path_type, metavar="FILE", help="Also write the report as JUnit XML, for CI."
)
rules_option = click.option(
    "--rules", "every_rule", is_flag=True, help="Show every rule, not only what is broken."
)


class Size(click.ParamType):  # type: ignore[type-arg]
    """A number of bytes: 8MiB, 20000000."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"([0-9]{1,12})(|KiB|MiB|GiB)", str(value))
        if match is None:
            self.fail(f"{value!r} is not a size; write 8MiB or 20000000", param, ctx)
        return int(match[1]) << {"": 0, "KiB": 10, "MiB": 20, "GiB": 30}[match[2]]


def user_and_password(text: str) -> tuple[str, str]:
    """The value of an option --sasl.

    Errors:  UserError for one that is not USER:PASSWORD; it does not show the password.
    """
    name, colon, password = text.partition(":")
    if not (name and colon and password):
        raise UserError(f"--sasl: {name!r} is not USER:PASSWORD, such as alice:secret")
    return name, password


def limits_option(command: Callable[..., int]) -> Callable[..., int]:
    """The options for what reading one file may take."""

    @click.option(
        "--max-batch",
        type=Size(),
        default=MAX_BATCH_BYTES,
        show_default="8MiB, as Kafka",
        help="The largest batch of a metadata log that is read.",
    )
    @click.option(
        "--max-unpacked",
        type=Size(),
        default=MAX_DECOMPRESSED_BYTES,
        show_default="20MiB",
        help="What the compressed batches of one file may unpack to.",
    )
    @functools.wraps(command)
    def limited(*args: Any, max_batch: int, max_unpacked: int, **options: Any) -> int:
        limits = ReadLimits(batch_bytes=max_batch, decompressed_bytes=max_unpacked)
        return command(*args, limits=limits, **options)

    return limited
