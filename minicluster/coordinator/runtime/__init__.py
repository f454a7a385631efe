"""The base of both coordinators: shards that are loaded from a log, and write to it."""
