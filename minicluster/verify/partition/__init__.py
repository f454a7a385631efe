"""The replicas of one partition: folds of what they did, each with its rules."""
