"""A cluster that serves clients until it is stopped, with steps from a file and from a shell."""
