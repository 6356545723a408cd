"""Activations: functions of one value with numbers of their own."""
from __future__ import annotations

from ....errors import FormatError
from ....graph import Value
from ....ops import elementwise as e, host, host_math
from ....types import known
from ..importer import Op
from ..registry import imports
from .elementwise import add, div, mul, number, same, sub, times, where


@imports(arithmetic=True)
def Elu(g: Op, x: Value, *, alpha: float = 1.0, consumed_inputs: tuple[int, ...] = ()) -> Value:
    return same(g, e.ELU, x, alpha=alpha)


@imports(arithmetic=True)
def Celu(g: Op, x: Value, *, alpha: float = 1.0) -> Value:
    """max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))."""
    if alpha == 1:
        return same(g, e.ELU, x, alpha=1.0)
    below = div(g, g.elementwise(e.MINIMUM, x, number(g, x, 0)), number(g, x, alpha))
    return add(g, same(g, e.RELU, x), times(g, same(g, e.ELU, below, alpha=1.0), alpha))


@imports(until=5, arithmetic=True)
def Selu(g: Op, x: Value, *, alpha: float = 1.6732, gamma: float = 1.0507, consumed_inputs: tuple[int, ...] = ()
         ) -> Value:
    return times(g, same(g, e.ELU, x, alpha=alpha), gamma)


@imports("Selu", since=6, arithmetic=True)
def selu(g: Op, x: Value, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875
         ) -> Value:
    return times(g, same(g, e.ELU, x, alpha=alpha), gamma)


@imports(arithmetic=True)
def Gelu(g: Op, x: Value, *, approximate: str = "none") -> Value:
    if approximate not in ("none", "tanh"):
        raise FormatError(f"is approximated by {approximate!r}")
    return same(g, host_math.GELU, x, approximate=approximate == "tanh")


@imports(arithmetic=True)
def LeakyRelu(g: Op, x: Value, *, alpha: float = 0.01, consumed_inputs: tuple[int, ...] = ()) -> Value:
    return same(g, host.LEAKY_RELU, x, alpha=alpha)


@imports(until=6, arithmetic=True)
def PRelu(g: Op, x: Value, slope: Value, *, consumed_inputs: tuple[int, ...] = ()) -> Value:
    """One slope, or one per channel, which is the second axis."""
    return g.elementwise(e.PRELU, x, per_channel(g, x, slope) if slope.tensor.size > 1 else slope)


@imports("PRelu", since=7, arithmetic=True)
def prelu(g: Op, x: Value, slope: Value) -> Value:
    """Slopes broadcast to x; a vector that fits the channels alone, as older exporters wrote it, is of these."""
    shape, n = g.shape(x), g.shape(slope)
    lost = len(n) == 1 < len(shape) and known(n[0]) and n[0] != 1 and known(shape[-1]) and n[0] != shape[-1]
    return g.elementwise(e.PRELU, x, per_channel(g, x, slope) if lost and n[0] == shape[1] else slope)


def per_channel(g: Op, x: Value, slope: Value) -> Value:
    """A vector along the second axis of x."""
    return g.reshape(slope, (slope.tensor.size,) + (1,) * max(g.rank(x) - 2, 0))


@imports(arithmetic=True)
def HardSigmoid(g: Op, x: Value, *, alpha: float = 0.2, beta: float = 0.5, consumed_inputs: tuple[int, ...] = ()
                ) -> Value:
    return same(g, host.RELU_0_TO_1, add(g, times(g, x, alpha), number(g, x, beta)))


@imports(arithmetic=True)
def ThresholdedRelu(g: Op, x: Value, *, alpha: float = 1.0) -> Value:
    return where(g, g.elementwise(e.GREATER, x, number(g, x, alpha)), x, number(g, x, 0))


@imports(arithmetic=True)
def Shrink(g: Op, x: Value, *, bias: float = 0.0, lambd: float = 0.5) -> Value:
    above = where(g, g.elementwise(e.GREATER, x, number(g, x, lambd)), sub(g, x, number(g, x, bias)), number(g, x, 0))
    return where(g, g.elementwise(e.LESS, x, number(g, x, -lambd)), add(g, x, number(g, x, bias)), above)


@imports(arithmetic=True)
def Softsign(g: Op, x: Value) -> Value:
    return div(g, x, add(g, same(g, e.ABS, x), number(g, x, 1)))


@imports(arithmetic=True)
def Swish(g: Op, x: Value, *, alpha: float = 1.0) -> Value:
    return mul(g, x, same(g, e.LOGISTIC, times(g, x, alpha)))


@imports(arithmetic=True)
def SwiGLU(g: Op, gate: Value, x: Value, *, alpha: float = 1.0) -> Value:
    return mul(g, Swish(g, gate, alpha=alpha), x)
