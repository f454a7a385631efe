"""A group, and the consumers that read for one: folds of what they got, with their rules."""
