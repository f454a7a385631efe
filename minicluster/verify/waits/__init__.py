"""What is waited for after the last disturbance of a run: folds of what waits, one table."""
