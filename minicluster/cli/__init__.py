"""The command line: one module for each group of commands, over a terminal that they share."""

from minicluster.cli.main import app, run

__all__ = ["app", "run"]
