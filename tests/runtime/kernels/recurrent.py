"""Recurrent operations by their definitions: float64, one step and one row at a time; random weights for them."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from one_op import tensor

from nnx_convert.ops import rnn
from nnx_convert.runtime.bind import mapped, tensor_names
from nnx_convert.runtime.kernel import Site, kernel_of
from nnx_convert.schema import OpDef
from nnx_convert.types import Tensor

Array = np.ndarray[Any, Any]
NO_NORM, NO_AUX, NO_LATE_NORM = rnn.Norm(*[None] * 4), rnn.Aux(*[None] * 4), rnn.LateNorm()
#: Activations by code.
ACTS: dict[int, Callable[[Array], Array]] = {
    0: lambda v: v, 1: lambda v: np.maximum(v, 0), 2: lambda v: np.clip(v, -1, 1), 3: lambda v: np.clip(v, 0, 6),
    4: np.tanh, 6: lambda v: 1 / (1 + np.exp(-v))}


@dataclass(frozen=True)
class Plan:
    """Which parts an LSTM has, and its sizes."""

    inputs: int = 3
    units: int = 4
    width: int = 4
    coupled: bool = False
    peephole: bool = False
    projection: bool = False
    projection_bias: bool = False
    norm: bool = False
    aux: int = 0

    @property
    def out(self) -> int:
        """The width of the output."""
        return self.width if self.projection else self.units

    def draw(self, rng: np.random.Generator, code: Any,
             inputs: int | None = None) -> tuple[rnn.Cell, rnn.Norm, rnn.Aux]:
        """Random weights as constants of a type."""
        def some(there: bool, *shape: int) -> Tensor | None:
            return tensor(rng.normal(0, 0.6, shape), code) if there else None
        u, n = self.units, self.inputs if inputs is None else inputs
        own = not self.coupled
        gates, peepholes = (own, True, True, True), (self.peephole and own, self.peephole, self.peephole)
        cell = rnn.Cell(*[some(g, u, n) for g in gates], *[some(g, u, self.out) for g in gates],
                        *[some(p, u) for p in peepholes], *[some(g, u) for g in gates],
                        some(self.projection, self.out, u), some(self.projection and self.projection_bias, self.out))
        return (cell, rnn.Norm(*[some(self.norm and g, u) for g in gates]),
                rnn.Aux(*[some(self.aux > 0 and g, u, self.aux) for g in gates]))


def real(args: Any) -> Any:
    """A structure of constants as float64 arrays."""
    return mapped(args, lambda t: t.data.astype(np.float64))


@dataclass(frozen=True)
class Step:
    """What an LSTM's steps need beside their weights."""

    act: int = 4
    cell_clip: float = 0.0
    proj_clip: float = 0.0

    def of(self, w: Any, n: Any, a: Any, row: Array, aux: Array | None, h: Array, c: Array) -> tuple[Array, Array]:
        """The states after one row [inputs] of one sample."""
        def gate(name: str, cell: Array) -> Array:
            total = getattr(w, "w" + name) @ row + getattr(w, "r" + name) @ h
            if getattr(a, name) is not None:
                total = total + getattr(a, name) @ aux
            if getattr(w, "p" + name, None) is not None:
                total = total + getattr(w, "p" + name) * cell
            if getattr(n, name) is not None:
                total = (total - total.mean()) / np.sqrt(total.var() + 1e-8) * getattr(n, name)
            return total + getattr(w, "b" + name)
        f = ACTS[6](gate("f", c))
        i = 1 - f if w.wi is None else ACTS[6](gate("i", c))
        c = f * c + i * ACTS[self.act](gate("c", c))
        c = np.clip(c, -self.cell_clip, self.cell_clip) if self.cell_clip else c
        h = ACTS[6](gate("o", c)) * ACTS[self.act](c)
        if w.wp is not None:
            h = w.wp @ h + (0 if w.bp is None else w.bp)
            h = np.clip(h, -self.proj_clip, self.proj_clip) if self.proj_clip else h
        return h, c


def lstm(x: Array, weights: tuple[Any, Any, Any], h: Array, c: Array, step: Step, aux: Array | None = None,
         backward: bool = False) -> tuple[Array, Array, Array]:
    """x [time, batch, inputs] -> outputs [time, batch, width] and the states after."""
    time, count = x.shape[:2]
    out, h, c = np.zeros((time, *h.shape)), h.copy(), c.copy()
    for t in range(time)[::-1] if backward else range(time):
        for n in range(count):
            h[n], c[n] = step.of(*weights, x[t, n], None if aux is None else aux[t, n], h[n], c[n])
        out[t] = h
    return out, h, c


def rnn_pass(pairs: Sequence[tuple[Array, Array]], r: Array, b: Array, h: Array, act: int,
             backward: bool = False) -> tuple[Array, Array]:
    """Sequences [time, batch, inputs] with their weights -> outputs and the state after."""
    time, count = pairs[0][0].shape[:2]
    out, h = np.zeros((time, *h.shape)), h.copy()
    for t in range(time)[::-1] if backward else range(time):
        for n in range(count):
            h[n] = ACTS[act](sum((w @ x[t, n] for x, w in pairs), b + r @ h[n]))
        out[t] = h
    return out, h


def run_late(op: OpDef, args: dict[str, Any], outs: Sequence[Array]) -> list[Array]:
    """The operation with no value known before the run; outputs shaped and typed as `outs`."""
    kernel = kernel_of(op)
    assert kernel is not None
    late = {n: mapped(a, lambda t: replace(t, data=None)) if isinstance(a, Tensor | tuple) else a
            for n, a in args.items()}
    site = Site(op.infer(late, len(outs)))
    run = kernel.prepare(site, **late)
    made = [np.zeros_like(o) for o in outs]
    run(*made, *(mapped(args[n], lambda t: t.data) for n in tensor_names(op)), *(np.empty(*b) for b in site.buffers))
    return made
