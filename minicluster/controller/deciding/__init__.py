"""The decisions that several operations share."""
