"""LLVM, where it is installed and cannot be loaded."""
from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

from nnx_convert import RunError
from nnx_convert.runtime.codegen import objects


class NoRoom:
    """What imports meet where a library does not fit into memory."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> None:
        if name == "llvmlite.binding":
            raise OSError("libllvmlite.so: failed to map segment from shared object")


def test_llvm_that_cannot_be_loaded_is_a_fault_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "llvmlite.binding", raising=False)
    monkeypatch.setattr(sys, "meta_path", [NoRoom(), *sys.meta_path])
    with pytest.raises(RunError, match=r"LLVM cannot be loaded: libllvmlite\.so: failed to map"):
        objects._llvm.__wrapped__()
