"""The checks of requests that any controller does, before the active one decides."""
