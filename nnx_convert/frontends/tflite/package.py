"""The `tflite` package, whose `__init__` imports its 187 modules: here each is imported when its class is asked for.

A model needs about thirty of them, and to import all takes longer than to read the model.
"""
from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any


class Package(ModuleType):
    """A package that has not run its `__init__`, and does when something is asked of it that no module of its own is
    named for. To who imports it in this process, too, it is the package."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            with suppress(ModuleNotFoundError):
                module = import_module(f"{self.__name__}.{name}")
                if hasattr(module, name):                # else the module itself is meant
                    self.__dict__[name] = getattr(module, name)
                    return self.__dict__[name]
        whole(self)
        return getattr(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Importing a module would set it in the place of its class."""
        if value is not sys.modules.get(f"{self.__name__}.{name}"):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        whole(self)
        return dir(self)


def whole(package: ModuleType) -> None:
    """Run the package's `__init__`; from then on it is a module as others."""
    assert package.__spec__ is not None and package.__spec__.loader is not None
    package.__spec__.loader.exec_module(package)
    package.__class__ = ModuleType
    for name, module in list(sys.modules.items()):
        parent, _, own = name.rpartition(".")
        if parent == package.__name__:
            package.__dict__.setdefault(own, module)


def lazily(name: str) -> None:
    """Have a package imported by its parts, unless it was imported before or is not there."""
    spec = None if name in sys.modules else find_spec(name)
    if spec is not None:
        package = module_from_spec(spec)
        package.__class__ = Package
        sys.modules[name] = package
