"""The quorum of controllers: folds of its events and of its logs, each with its rules."""
