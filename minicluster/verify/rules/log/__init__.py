"""Rules over the metadata log alone."""
