"""nnx_convert: TFLite and ONNX models on the Android NNAPI operation set, NNAPI-EX and DENSIFY.

    model = nnx_convert.convert("pose.tflite", nnx_convert.Target(level=29))
    model.save("pose.nnx")
    outputs = nnx_convert.compile(model).run({"input": image})

Names are imported when they are first used: `import nnx_convert` by itself loads nothing, NumPy included.
"""
from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .artifact import load as load
    from .artifact.as_json import from_json as from_json
    from .builder import ModelBuilder as ModelBuilder
    from .check import Check as Check, check as check
    from .codes import (
        FeatureLevel as FeatureLevel,
        FuseCode as FuseCode,
        OperandCode as OperandCode,
        OperationCode as OperationCode,
        OperationCodeEx as OperationCodeEx,
        PaddingCode as PaddingCode,
        ResultCode as ResultCode,
    )
    from .convert import compile as compile, convert as convert
    from .errors import (
        ArtifactError as ArtifactError,
        ExportError as ExportError,
        FormatError as FormatError,
        InputError as InputError,
        LimitError as LimitError,
        ModelError as ModelError,
        NnxError as NnxError,
        Oversized as Oversized,
        RunError as RunError,
        StrictError as StrictError,
        Unsupported as Unsupported,
        UsageError as UsageError,
    )
    from .lowering.pipeline import register_pass as register_pass
    from .lowering.rewrite import Event as Event, Refusal as Refusal, Rewriter as Rewriter, Rules as Rules
    from .model import Model as Model, Step as Step
    from .ops.custom import register_custom_op as register_custom_op
    from .resources import limited as limited
    from .runtime.compiled import CompiledModel as CompiledModel, TensorSpec as TensorSpec
    from .target import Target as Target

__version__ = "0.1.0"

_HOMES = {
    "artifact": "load",
    "artifact.as_json": "from_json",
    "builder": "ModelBuilder",
    "codes": "FeatureLevel FuseCode OperandCode OperationCode OperationCodeEx PaddingCode ResultCode",
    "check": "Check check",
    "convert": "compile convert",
    "errors": "ArtifactError ExportError FormatError InputError LimitError ModelError NnxError Oversized RunError "
              "StrictError Unsupported UsageError",
    "lowering.pipeline": "register_pass",
    "lowering.rewrite": "Event Refusal Rewriter Rules",
    "model": "Model Step",
    "ops.custom": "register_custom_op",
    "resources": "limited",
    "runtime.compiled": "CompiledModel TensorSpec",
    "target": "Target",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = ["__version__", *sorted(_HOME)]  # noqa: PLE0604  (all are strings)


class _Package(ModuleType):
    """The package; importing its module `convert` must not hide the function of that name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f".{_HOME[name]}", __name__), name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_HOME})


sys.modules[__name__].__class__ = _Package
