"""The producers of a log: their sequences and transactions."""
