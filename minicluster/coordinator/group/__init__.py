"""The group coordinator: groups and committed offsets, on ``__consumer_offsets``."""
