"""The indexes that a log keeps beside its batches."""
