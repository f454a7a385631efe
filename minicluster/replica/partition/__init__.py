"""One partition on one broker."""
