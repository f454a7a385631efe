"""Plain logs that are too long to be held: judged piece by piece, by shares of their partitions."""
