"""The state of a controller: the image with its indexes, and the soft state of the active one."""
