"""The requests of a group coordinator, one file each."""
