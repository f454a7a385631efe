"""Imported as ``minicluster.actors`` only: a second copy would split every class."""

if not __name__.startswith("minicluster."):
    raise ImportError("import minicluster.actors, not actors")
