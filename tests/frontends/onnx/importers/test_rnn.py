"""Recurrent operators against a step by step reading of the standard, in float64."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from one_node import converted
from three_ways import WAYS, Node, built, check, expected, n

import nnx_convert
from nnx_convert.errors import NnxError

R = np.random.default_rng(9)
TIME, BATCH, WIDTH, UNITS = 4, 3, 2, 3
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
FUNCTIONS: dict[str, Any] = {
    "Tanh": np.tanh, "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Relu": lambda x: np.maximum(x, 0),
    "Softsign": lambda x: x / (1 + np.abs(x)), "Softplus": lambda x: np.logaddexp(x, 0),
    "LeakyRelu": lambda x: np.where(x < 0, 0.3 * x, x), "HardSigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "Elu": lambda x: np.where(x < 0, 0.5 * np.expm1(np.minimum(x, 0)), x), "Affine": lambda x: 0.7 * x + 0.1,
    "ScaledTanh": lambda x: 0.7 * np.tanh(0.1 * x), "ThresholdedRelu": lambda x: np.where(x > 0.4, x, 0)}
X = R.normal(size=(TIME, BATCH, WIDTH)).astype(np.float32)


def step(op: str, sums: Any, r: Any, bias: Any, state: Any, f: Any, p: Any, how: dict[str, Any]) -> Any:
    """The states after a step; `sums` are those of the inputs with their bias."""
    h, clip = state[0], how.get("clip", np.inf)

    def act(i: int, x: Any) -> Any:
        return FUNCTIONS[f[i]](np.clip(x, -clip, clip))
    if op == "RNN":
        return [act(0, sums + h @ r.T + bias)]
    if op == "GRU":
        xz, xr, xh = np.split(sums, 3, 1)
        rz, rr, rh = np.split(r, 3)
        bz, br, bh = np.split(bias, 3)
        z, reset = act(0, xz + h @ rz.T + bz), act(0, xr + h @ rr.T + br)
        linear = how.get("linear_before_reset")
        new = act(1, xh + (reset * (h @ rh.T + bh) if linear else (reset * h) @ rh.T + bh))
        return [(1 - z) * new + z * h]
    i, o, forget, c = np.split(sums + h @ r.T + bias, 4, 1)
    pi, po, pf = np.split(p, 3)
    i = act(0, i + pi * state[1])
    forget = 1 - i if how.get("input_forget") else act(0, forget + pf * state[1])
    cell = forget * state[1] + i * act(1, c)
    return [act(0, o + po * cell) * FUNCTIONS[f[2]](cell), cell]


def answers(op: str, w: Any, r: Any, b: Any, lengths: Any, states: Any, p: Any, how: dict[str, Any]) -> list[Any]:
    """All outputs of an operator, time first."""
    outs, ends, count = [], [], len(w)
    names = how.get("activations", DEFAULTS[op] * count)
    for d in range(count):
        back, wide = d == 1 or how.get("direction") == "reverse", GATES[op] * UNITS
        f, state = names[d * len(DEFAULTS[op]):], [s[d].astype(np.float64) for s in states]
        out = np.zeros((TIME, BATCH, UNITS))
        for t in range(TIME)[::-1] if back else range(TIME):
            made = step(op, X[t] @ w[d].astype(np.float64).T + b[d, :wide], r[d], b[d, wide:], state, f, p[d], how)
            there = np.ones(BATCH, bool) if lengths is None else t < lengths
            out[t] = np.where(there[:, None], made[0], 0)
            state = [np.where(there[:, None], new, old) for new, old in zip(made, state, strict=True)]
        outs.append(out)
        ends.append(state)
    return [np.stack(outs, 1), *(np.stack(s) for s in zip(*ends, strict=True))]


def case(op: str, bias: bool = True, lengths: Any = None, states: bool = True, peep: bool = False, opset: int = 22,
         **how: Any) -> Node:
    """A case with its answers."""
    count, wide = 2 if how.get("direction") == "bidirectional" else 1, GATES[op] * UNITS
    w, r = (R.normal(size=(count, wide, k)).astype(np.float32) for k in (WIDTH, UNITS))
    b = R.normal(size=(count, 2 * wide)).astype(np.float32) * bias
    held = [R.normal(size=(count, BATCH, UNITS)).astype(np.float32) * states for _ in range(1 + (op == "LSTM"))]
    p = R.normal(size=(count, 3 * UNITS)).astype(np.float32) * peep
    want = answers(op, w, r, b, lengths, held, p, how)
    x, layout = X, how.get("layout", 0)
    given = [v if states else None for v in held]
    if layout:
        x = X.swapaxes(0, 1)
        given = [v if v is None else v.swapaxes(0, 1) for v in given]
        want = [want[0].transpose(2, 0, 1, 3), *(v.swapaxes(0, 1) for v in want[1:])]
    inputs = [x, w, r, b if bias else None, lengths, *given, *[p] * peep]
    while inputs[-1] is None:
        inputs.pop()
    return n(op, *inputs, hidden_size=UNITS, outputs=len(want), opset=opset, want=[v.astype(np.float32) for v in want],
             **how)


LENGTHS = np.array([4, 1, 3], np.int32)
OPS = ("RNN", "GRU", "LSTM")
BACK = ("reverse", "bidirectional")
NUMBERS = {"activation_alpha": [0.7, 0.5], "activation_beta": [0.1]}
CASES = [
    *(case(op, bias=bias, states=bias) for op in OPS for bias in (True, False)),
    *(case(op, direction=d) for op in OPS for d in BACK),
    *(case(op, layout=1, direction=d) for op in OPS for d in BACK),
    *(case(op, lengths=LENGTHS, direction=d) for op in OPS for d in ("forward", *BACK)),
    *(case(op, lengths=np.full(BATCH, TIME, np.int32)) for op in OPS), *(case(op, clip=0.4) for op in OPS),
    *(case(op, opset=7) for op in OPS), case("RNN", activations=["Relu"]), case("RNN", activations=["Sigmoid"]),
    case("LSTM", peep=True), case("LSTM", peep=True, direction="bidirectional"), case("LSTM", input_forget=1),
    case("LSTM", activations=["Sigmoid", "Relu", "Relu"]),
    case("LSTM", activations=["HardSigmoid", "Softsign", "Tanh"]),
    case("LSTM", activations=["Sigmoid", "Tanh", "Relu"]),
    *(case("GRU", linear_before_reset=1, direction=d) for d in ("forward", *BACK)),
    case("GRU", activations=["Affine", "Elu"], **NUMBERS), case("GRU", activations=["Sigmoid", "Softplus"]),
    case("RNN", activations=["LeakyRelu", "ScaledTanh"], direction="bidirectional", activation_alpha=[0.3, 0.7],
         activation_beta=[0.1]),
    case("RNN", activations=["ThresholdedRelu"], activation_alpha=[0.4])]


@pytest.mark.parametrize(("given", "way"), list(product(CASES, WAYS)), ids=str)
def test_step_by_step(given: Node, way: str) -> None:
    check(given, way, 1e-4)


#: A case of constant weights, and what it becomes by name: operations, or the host's one.
BECOMES = [(case("LSTM", direction="bidirectional"), "BIDIRECTIONAL_SEQUENCE_LSTM", 1),
           (case("LSTM", direction="reverse"), "UNIDIRECTIONAL_SEQUENCE_LSTM", 1),
           (case("LSTM", lengths=LENGTHS), "LSTM_SEQUENCE", 1), (case("RNN", activations=["Relu"]),
                                                               "UNIDIRECTIONAL_SEQUENCE_RNN", 1),
           (case("RNN"), "TANH", TIME), (case("GRU"), "TANH", TIME), (case("GRU", clip=0.4), "GRU_SEQUENCE", 1)]


@pytest.mark.parametrize(("given", "op", "count"), BECOMES, ids=str)
def test_what_it_becomes(given: Node, op: str, count: int) -> None:
    found = [o.op.name for o in converted(built(given, "fixed")[0]).operations]
    assert found.count(op) == count


@pytest.mark.parametrize(("op", "direction"), list(product(OPS, ("forward", *BACK))))
def test_a_batch_of_an_open_size_begins_with_zeros(op: str, direction: str) -> None:
    given = case(op, states=False, direction=direction)
    made, fed = built(given, "fixed")
    made.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "N"
    model = converted(made)
    assert not any(o.op.host for o in model.operations)
    for want, found in zip(expected(given), nnx_convert.compile(model).run(list(fed.values())), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-6)


#: What is refused, and with which words.
WRONG: list[tuple[Node, str]] = [
    (n("LSTM", X, *(v for v in CASES[4].inputs[1:3]), direction="sideways", want=[X]), "direction is 'sideways'"),
    (n("LSTM", X, *(v for v in CASES[4].inputs[1:3]), activations=["Tanh"], want=[X]), "activations are ['Tanh']"),
    (n("GRU", X[0], *(v for v in CASES[2].inputs[1:3]), want=[X]), "x, w, r and h have the ranks [2, 3, 3, 3], not 3"),
    (n("GRU", X, *(v for v in CASES[4].inputs[1:3]), want=[X]), "r is [directions, 3 * units, units]")]


@pytest.mark.parametrize(("given", "said"), WRONG, ids=[w for _, w in WRONG])
def test_what_does_not_fit_is_refused(given: Node, said: str) -> None:
    with pytest.raises(NnxError) as found:
        nnx_convert.convert(built(given, "fixed")[0].SerializeToString())
    assert said in str(found.value)


@pytest.mark.parametrize(("op", "direction"), list(product(OPS, ("forward", "bidirectional"))))
def test_what_is_empty_runs_or_is_refused(op: str, direction: str) -> None:
    ways = 1 + (direction == "bidirectional")
    for units, width, time, batch in product((0, 2), (0, 3), (0, 2), (0, 1)):
        x, w, r = (np.ones(s, np.float32) for s in (
            (time, batch, width), (ways, GATES[op] * units, width), (ways, GATES[op] * units, units)))
        given = n(op, x, w, r, outputs=2, direction=direction, want=[x, x])
        made, fed = built(given, "fixed")
        try:
            whole, last = nnx_convert.compile(made.SerializeToString()).run(list(fed.values()))
        except NnxError:
            continue
        assert (whole.shape, last.shape) == ((time, ways, batch, units), (ways, batch, units))
