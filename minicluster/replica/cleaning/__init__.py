"""Retention and compaction: the records that a log gives up with time."""
