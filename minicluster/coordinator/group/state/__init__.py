"""The state in a partition of ``__consumer_offsets``."""
