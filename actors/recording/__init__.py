"""The record of a run: the trace, the committed log, the run folder."""
