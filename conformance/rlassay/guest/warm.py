"""Starts the warm process (see `forks`): run as a file, with the descriptor of its socket as the argument.

This folder becomes a package of its own, without its parent on the path: nothing else of rlassay is near.
"""

from __future__ import annotations

import importlib
import importlib.util
import socket
import sys
from pathlib import Path

PACKAGE = "rlassay_guest"


def import_package() -> None:
    """Make this folder a package under another name."""
    folder = Path(__file__).resolve().parent
    sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != folder]
    spec = importlib.util.spec_from_file_location(
        PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    import_package()
    importlib.import_module(f"{PACKAGE}.forks").serve_forks(socket.socket(fileno=int(sys.argv[1])))
