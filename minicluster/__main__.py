"""``python -m minicluster`` and the ``minicluster`` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    from minicluster.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
