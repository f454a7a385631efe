"""The rest of a secured cluster: an authority with certificates, and users' secrets."""
