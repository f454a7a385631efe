"""The files of a broker's log directories."""
