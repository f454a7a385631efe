"""A cluster that is used for hours takes the memory of what its clients stored."""
