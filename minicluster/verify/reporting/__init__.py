"""The report as data, as text and as one HTML page."""
