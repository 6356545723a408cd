"""Functions of elements, running sums, bits, random numbers: operators that the host's operations were made for."""
from __future__ import annotations

import numpy as np
import tflite

from ....errors import FormatError, Unsupported
from ....graph import Value
from ....ops import control, host_math as h
from ....types import F32
from ..importer import Op
from ..registry import INT32, Const, imports
from .common import axis_of, index, onto
from .elementwise import binary, unary

for name_, op_ in {"SIGN": h.SIGN, "REAL": h.REAL, "IMAG": h.IMAG}.items():
    imports(name_)(unary(op_))
for name_, op_ in {"BITWISE_XOR": h.BITWISE_XOR, "RIGHT_SHIFT": h.RIGHT_SHIFT}.items():
    imports(name_)(binary(op_))


@imports()
def GELU(g: Op, o: tflite.GeluOptions, x: Value) -> Value:
    return onto(g, h.GELU, x, approximate=o.Approximate())


@imports()
def BUCKETIZE(g: Op, o: tflite.BucketizeOptions, x: Value) -> Value:
    bounds = np.array(o.BoundariesAsNumpy() if o.BoundariesLength() else (), np.float32)
    if not bounds.size or not (np.diff(bounds) >= 0).all():
        raise FormatError(f"the boundaries {bounds.tolist()} do not ascend")
    return g(h.BUCKETIZE, x, g.const(bounds, F32))


@imports()
def CUMSUM(g: Op, o: tflite.CumsumOptions, x: Value, axis: Const) -> Value:
    return g(h.CUMSUM, x, axis=axis_of(axis[0], len(x.shape)), exclusive=o.Exclusive(), reverse=o.Reverse())


@imports()
def BITCAST(g: Op, x: Value) -> Value:
    return g(h.BITCAST, x, to=g.outs[0].type, out=g.outs[0])


def seeds(o: tflite.RandomOptions) -> tuple[int, int]:
    """The two seeds; raises `Unsupported` where one is none of 32 bits."""
    found = o.Seed(), o.Seed2()
    if not all(s in INT32 for s in found):
        raise Unsupported(f"the seeds {list(found)} are beyond 32 bits")
    return found


@imports()
def RANDOM_UNIFORM(g: Op, o: tflite.RandomOptions, size: Value) -> Value:
    """As at the first run of TFLite's interpreter, each time."""
    return g(h.RANDOM_UNIFORM, index(g, size), *seeds(o))


@imports()
def RANDOM_STANDARD_NORMAL(g: Op, o: tflite.RandomOptions, size: Value) -> Value:
    """As at the first run of TFLite's interpreter, each time."""
    return g(h.RANDOM_STANDARD_NORMAL, index(g, size), *seeds(o))


@imports()
def MULTINOMIAL(g: Op, o: tflite.RandomOptions, logits: Value, samples: Const) -> Value:
    """Distributed as TFLite's; NNAPI does not say which classes a seed draws."""
    return g(control.RANDOM_MULTINOMIAL, logits, samples=samples[0], seeds=seeds(o))
