"""What both coordinators are built on: shards that are loaded from a log, and write to it."""
