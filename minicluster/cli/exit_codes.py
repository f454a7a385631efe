"""The exit codes: the verdict's, and 64 and above where nothing was judged or written."""

from __future__ import annotations

EXIT_INVALID = 1
EXIT_UNKNOWN = 2
EXIT_USAGE = 64
EXIT_CONTENT = 65
EXIT_INTERNAL = 70
EXIT_FILES = 74
EXIT_STOPPED = 130
