"""The log-only rules in Python, over committed batches, as they commit."""
