"""The metadata image, its parts, and the difference between two images."""
