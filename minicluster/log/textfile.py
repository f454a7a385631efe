"""Small text files beside a log: read if there, replaced at once."""

from __future__ import annotations

import os
from pathlib import Path

from minicluster.files import UnusableFile, read_bytes
from minicluster.log.errors import LogError

MAX_TEXT_BYTES = 16 << 20


def read_text(path: Path) -> str | None:
    """The text of a file, None if there is none.

    Errors:  LogError if it is there and cannot be read as text.
    """
    try:
        return read_bytes(path, max_bytes=MAX_TEXT_BYTES).decode("utf-8")
    except FileNotFoundError:
        return None
    except UnusableFile as error:
        raise LogError(str(error)) from None
    except UnicodeDecodeError:
        raise LogError(f"{path}: not a text file") from None
    except OSError as error:
        raise LogError(f"{path}: cannot be read: {error.strerror}") from None


def write_atomically(path: Path, text: str) -> None:
    """Write beside the file, flush to disk, then rename over it."""
    beside = path.with_name(path.name + ".tmp")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
