"""Small models of many operators, and what becomes of them when something in them is changed."""
from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, helper, numpy_helper, parser

#: Inputs that begin with w are constants of the model.
TEXTS = """
conv (float[1,3,8,8] x, float[4,3,3,3] w, float[4] wb, float[4] ws, float[4] wv, float[10,16] wd) => (float[1,10] y) {
  a = Conv <pads = [1,1,1,1], strides = [2,2]> (x, w, wb)  b = BatchNormalization (a, ws, wb, wb, wv)  c = Relu (b)
  d = MaxPool <kernel_shape = [2,2], strides = [2,2]> (c)  e = Flatten (d)  y = Gemm <transB = 1> (e, wd)
}
shapes (float[n,4,6] x, int64[2] wi) => (y, z) {
  s = Shape (x)  i = Constant <value_ints = [0]> ()  n = Gather (s, i)  m = Constant <value_ints = [-1]> ()
  t = Concat <axis = 0> (n, m)  r = Reshape (x, t)  y = Softmax (r)  p = Transpose <perm = [0,2,1]> (x)
  z = Gather <axis = 1> (p, wi)
}
cuts (float[3,4,5] x, int64[3] ws, int64[3] we) => (y, z, k) {
  s = Slice (x, ws, we)  l, r = Split <axis = 1, num_outputs = 2> (x)  y = Concat <axis = 1> (r, l)
  v = Constant <value_ints = [2]> ()  z, k = TopK <axis = 1> (l, v)
}
pads (float[1,4,6,6] x, int64[8] wp, float[4] wf) => (y, z) {
  p = Pad <mode = "reflect"> (x, wp)
  y = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel"> (p, , wf)
  z = DepthToSpace <blocksize = 2> (x)
}
sums (float[2,3,4] x, float[4] w) => (y, z, k) {
  a = Constant <value_ints = [1]> ()  m = ReduceMean <keepdims = 1> (x, a)  d = Sub (x, m)  q = Mul (d, d)
  v = ReduceSum (q, a)  y = LayerNormalization <axis = -1> (d, w)  z = ArgMax <axis = 2> (x)  k = CumSum (x, a)
}
cells (float[5,2,3] x, float[1,16,3] w, float[1,16,4] wr, float[1,12,4] wg, float[1,12,4] wh) => (y, h, g) {
  y, h, c = LSTM <hidden_size = 4> (x, w, wr)  i = Squeeze (h)  j = Unsqueeze (i, o)  o = Constant <value_ints = [0]> ()
  g, f = GRU <hidden_size = 4> (y2, wg, wh)  y2 = Squeeze (y, o1)  o1 = Constant <value_ints = [1]> ()
}
codes (float[1,4] x, float ws, uint8 wz, uint8[4,3] wq) => (y, z) {
  q = QuantizeLinear (x, ws, wz)  d = DequantizeLinear (q, ws, wz)  e = DequantizeLinear (wq, ws, wz)
  m = MatMul (d, e)  r = QuantizeLinear (m, ws, wz)  y = DequantizeLinear (r, ws, wz)  z = MatMulInteger (q, wq, wz, wz)
}
choices (float[2,3] x, bool c, int64 m) => (y, z) {
  y = If (c) <then_branch = t () => (float[2,3] a) { a = Relu (x) },
              else_branch = e () => (float[2,3] b) { b = Neg (x) }>
  z, u = Loop (m, c, x) <body = f (int64 i, bool k, float[2,3] v) => (bool k2, float[2,3] v2, float[2,3] s) {
    k2 = Identity (k)  v2 = Add (v, v)  s = Mul (v, v) }>
}
places (float[3,4] x, int64[2,2] w, float[2] wu, int64[3,1] wi) => (y, z, k) {
  y = ScatterND (x, w, wu)  z = GatherElements <axis = 1> (x, wi)  g = GatherND (x, w)  n = NonZero (x)
  k = Cast <to = 6> (n)
}
lists (float[4,3] x, int64 w) => (y, z) {
  s = SplitToSequence <axis = 0> (x)  t = SequenceInsert (s, x2, w)  x2 = Identity (x)  y = SequenceAt (t, w)
  z = ConcatFromSequence <axis = 0> (s)
}
signs (int64[2,3] x, int64[3] w, float[2,3] f) => (y, z, k) {
  m = Constant <value_ints = [3, -2, 5]> ()  a = Mul (x, w)  b = Mod (a, m)  y = Div (b, m)
  c = Greater (x, w)  z = Where (c, x, w)  k = Clip (f, lo, hi)
  lo = Constant <value_float = -1.0> ()  hi = Constant <value_float = 1.0> ()
}
terms (float[2,3] x, float[3,2] y) => (z, k) {
  z = Einsum <equation = "ij,jk->ik"> (x, y)  e = Erf (x)  p = Pow (e, e)  k = Gelu (p)
}
"""
WHOLE = [0, 1, -1, 2, 3, -2, 7, 100, -100, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63)]
REAL = [0.0, 1.0, -1.0, 0.5, 1e30, 1e-30, float("nan"), float("inf"), -float("inf")]


@cache
def sources() -> dict[str, ModelProto]:
    """The models by name, their nodes in order."""
    found = {}
    for text in filter(None, map(str.strip, TEXTS.split("\n}\n"))):
        made = parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]>\n{text}\n}}')
        rng = np.random.default_rng(len(text))
        for port in [p for p in made.graph.input if p.name.startswith("w")]:
            t = port.type.tensor_type
            dtype = helper.tensor_dtype_to_np_dtype(t.elem_type)
            drawn = rng.integers(0, 2, [d.dim_value for d in t.shape.dim]) + (dtype == np.float32)
            made.graph.initializer.append(numpy_helper.from_array(drawn.astype(dtype), port.name))
            made.graph.input.remove(port)
        order(made.graph)
        found[made.graph.name] = made
    return found


def order(graph: GraphProto) -> None:
    """Put the nodes in an order in which they can run."""
    known = {p.name for p in graph.input} | {t.name for t in graph.initializer} | {""}
    left, done = list(graph.node), list[NodeProto]()
    while left:
        node = next(n for n in left if known.issuperset(n.input))
        left.remove(node)
        done.append(node)
        known.update(node.output)
    del graph.node[:]
    graph.node.extend(done)


def graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """The graph and those in it."""
    yield graph
    for a in (a for n in graph.node for a in n.attribute if a.HasField("g")):
        yield from graphs(a.g)


def mutant(seed: int) -> ModelProto:
    """One of the models with one to three things in it changed."""
    r = random.Random(seed)
    made = ModelProto()
    made.CopyFrom(r.choice(list(sources().values())))
    graph = r.choice(list(graphs(made.graph)))
    for _ in range(r.choice((1, 1, 2, 3))):
        r.choice(CHANGES)(graph, r)
    return made


def attribute(graph: GraphProto, r: random.Random) -> None:
    """Another value of an attribute, or none."""
    held = [a for n in graph.node for a in n.attribute]
    a = r.choice(held) if held else AttributeProto()
    if a.type == AttributeProto.INT:
        a.i = r.choice(WHOLE)
    elif a.type == AttributeProto.FLOAT:
        a.f = r.choice(REAL)
    elif a.type == AttributeProto.STRING:
        a.s = r.choice([b"", b"linear", b"reverse", b"SAME_UPPER", b"\xff", b"ij,ij->"])
    elif a.type == AttributeProto.INTS:
        changed(a.ints, r, WHOLE)
    elif a.type == AttributeProto.FLOATS:
        changed(a.floats, r, REAL)


def changed(numbers: Any, r: random.Random, choice: list[Any]) -> None:
    """One more number, one less, or another."""
    if numbers and r.random() < 0.3:
        numbers.pop()
    elif numbers and r.random() < 0.5:
        numbers[r.randrange(len(numbers))] = r.choice(choice)
    else:
        numbers.append(r.choice(choice))


def dropped(graph: GraphProto, r: random.Random) -> None:
    """A node without one of its attributes, or without its last input."""
    node = r.choice(graph.node)
    if node.attribute and r.random() < 0.5:
        del node.attribute[r.randrange(len(node.attribute))]
    elif node.input:
        node.input.pop()


def rewired(graph: GraphProto, r: random.Random) -> None:
    """A node that reads another value, or one more."""
    names = ["", *(p.name for p in graph.input), *(t.name for t in graph.initializer), *graph.node[0].output]
    node = r.choice(graph.node)
    if node.input and r.random() < 0.8:
        node.input[r.randrange(len(node.input))] = r.choice(names)
    else:
        node.input.append(r.choice(names))


def renamed(graph: GraphProto, r: random.Random) -> None:
    """A node of another operator."""
    ops = sorted({n.op_type for m in sources().values() for n in m.graph.node})
    r.choice(graph.node).op_type = r.choice(ops)


def retyped(graph: GraphProto, r: random.Random) -> None:
    """An input of another type or shape."""
    if not graph.input:
        return
    t = r.choice(graph.input).type.tensor_type
    if r.random() < 0.5:
        t.elem_type = r.randrange(1, 27)
    elif t.shape.dim and r.random() < 0.7:
        t.shape.dim[r.randrange(len(t.shape.dim))].dim_value = r.choice([0, 1, 2, 3, 5, 1 << 31])
    elif t.shape.dim and r.random() < 0.5:
        t.shape.dim.pop()
    else:
        t.shape.dim.add().dim_param = "n"


def reweighed(graph: GraphProto, r: random.Random) -> None:
    """A constant with another element, or another shape."""
    if not graph.initializer:
        return
    t = r.choice(graph.initializer)
    if t.dims and r.random() < 0.3:
        t.dims[r.randrange(len(t.dims))] = r.choice([0, 1, 2])
    elif t.raw_data:
        data = bytearray(t.raw_data)
        data[r.randrange(len(data))] = r.choice([0, 1, 127, 128, 255])
        t.raw_data = bytes(data)


def undeclared(graph: GraphProto, r: random.Random) -> None:
    """Outputs of which the file says nothing."""
    for port in graph.output:
        port.ClearField("type")


CHANGES: tuple[Callable[[GraphProto, random.Random], None], ...] = (
    attribute, attribute, attribute, dropped, rewired, renamed, retyped, retyped, reweighed, undeclared)
