"""``python -m minicluster`` and the ``minicluster`` command."""

from __future__ import annotations

import gc
import signal
import sys


def main() -> None:
    """Run the command line; Ctrl-C may come before it is loaded."""
    try:
        from minicluster.cli import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        print("minicluster: stopped", file=sys.stderr)
        code = 130
    gc.freeze()  # else Python visits every object before it ends: 0.4 s after a serving cluster
    if code == 130:  # another Ctrl-C ends the process at once, without a traceback
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(code)


if __name__ == "__main__":
    main()
