"""Images of the metadata that nodes publish and snapshots: folds, each with its rules."""
