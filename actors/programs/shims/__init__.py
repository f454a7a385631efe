"""The reach of client libraries beyond the standard library's names: one file each."""
