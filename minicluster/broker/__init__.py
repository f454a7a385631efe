"""A broker besides its replicas: its life, its client APIs."""
