"""What a secured cluster has besides its rules: an authority with certificates, users' secrets."""
