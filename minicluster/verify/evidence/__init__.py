"""The evidence of a run: its header, its controllers' logs, the committed log, its trace."""
