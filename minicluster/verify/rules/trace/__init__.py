"""Rules over the trace of a run, beside its metadata log."""
