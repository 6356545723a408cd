"""Operators that a user of this library brings along, by name."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..frozen import frozen
from ..kinds import OutCount, T
from ..schema import OpError, host
from ..types import Q8, Tensor, Undecided
from .host import AnyT


@frozen
class CustomOp:
    """What a name stands for; see `register_custom_op`."""

    infer: Callable[..., Tensor | Sequence[Tensor]]
    kernel: Callable[..., Any]


CUSTOM_OPS: dict[str, CustomOp] = {}


def register_custom_op(name: str, infer: Callable[..., Tensor | Sequence[Tensor]], kernel: Callable[..., Any]) -> None:
    """Make a custom operator of source files known: they import, their models run and are saved.

    `infer(options, *inputs)` gives what is known of the outputs: a `Tensor` or several, from the inputs' `Tensor`s
    (`x.like(shape)` keeps type and grid, `x.free(shape)` the type). `kernel(options, *inputs)` computes them: an
    array or several, of these types and shapes. An input left out is None. Of TFLite, `name` is the custom operator's
    and `options` are its bytes in the file; of ONNX, `name` is "domain.Operator" (the standard's domain is "ai.onnx")
    and `options` are a NodeProto with the attributes alone, for `onnx.NodeProto.FromString`. A model that was saved
    needs the registration again before it is loaded, in every process. The name may be that of an operator known here:
    the user's comes first.
    """
    CUSTOM_OPS[name] = CustomOp(infer, kernel)


def custom_op(name: Tensor) -> CustomOp:
    """The operator that the bytes of a constant name; raises `OpError` where nobody registered it."""
    if name.data is None:
        raise OpError("CUSTOM", "its name must be a constant")
    text = name.data.tobytes().decode("utf-8", "replace")
    if text not in CUSTOM_OPS:
        raise OpError("CUSTOM", f"{text!r} is not registered: nnx_convert.register_custom_op does that")
    return CUSTOM_OPS[text]


def bytes_of(options: Tensor | None) -> bytes:
    """The bytes of a constant."""
    return b"" if options is None or options.data is None else options.data.tobytes()


@host(60300, {Q8: 27})
def CUSTOM(name: T, options: AnyT | None, *xs: AnyT | None, count: OutCount) -> list[AnyT]:
    """The operator registered under a name, given its options and inputs."""
    try:
        found = custom_op(name).infer(bytes_of(options), *xs)
    except (OpError, Undecided):
        raise
    except Exception as error:                   # of the user's own function
        raise OpError("CUSTOM", f"its infer function raises {type(error).__name__}: {error}") from error
    outs = [found] if isinstance(found, Tensor) else list(found)
    if len(outs) != count:
        raise OpError("CUSTOM", f"has {count} outputs, its infer function gives {len(outs)}")
    return outs
