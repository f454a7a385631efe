"""What a partition of ``__consumer_offsets`` holds."""
