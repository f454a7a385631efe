"""CRC-32C, by the compiled function of the package ``crc32c``.

The package itself imports importlib.metadata, email and argparse for its command line: 30 ms, a
tenth of a first start. So its extension is loaded alone, where it lies as it does now.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

Checksum = Callable[[bytes], int]


def _load() -> Checksum:
    package = find_spec("crc32c")
    places = None if package is None else package.submodule_search_locations
    extension = None if places is None else PathFinder.find_spec("crc32c._crc32c", places)
    if extension is None or extension.loader is None:
        from crc32c import crc32c as packaged

        return packaged
    module = module_from_spec(extension)
    extension.loader.exec_module(module)
    function: Checksum = module.crc32c
    return function


crc32c = _load()
