"""Edits of ONNX files: messages and fields of any kind, and what a graph is made of."""
from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import DecodeError
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, defs, helper, numpy_helper

from . import numbers

SIZES = (0, 1, 2, 3, 5, 8, 255, 65536, 1 << 20, 1 << 31, 1 << 40, (1 << 63) - 1, -1, -2, -(1 << 63))
TEXTS = ("", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", "linear", "nearest", "cubic", "asymmetric", "constant",
         "reflect", "edge", "wrap", "reverse", "bidirectional", "forward", "none", "add", "mul", "max", "ij,jk->ik",
         "ii->i", "...i,j...", "CRD", "DCR", "tanh", "Tanh", "Sigmoid", "round_prefer_floor", "align_corners", "\x00",
         "x" * 300, "\u202e")
DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft", "ai.onnx.preview.training", "local", "x")
DEEPEST = 6
WHOLE = {Field.TYPE_INT64: (-1 << 63, 1 << 63), Field.TYPE_INT32: (-1 << 31, 1 << 31), Field.TYPE_UINT64: (0, 1 << 64)}


def edited(data: bytes, r: random.Random) -> bytes | None:
    """The file with one thing changed; None where it is no sound file."""
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, RecursionError):
        return None
    if not model.HasField("graph"):
        return None
    graph = r.choice(list(graphs(model.graph)))
    try:
        for _ in range(20):
            edit = r.choice(EDITS)
            if edit(model if edit in WHOLES else graph, r):
                break
    except (UnicodeDecodeError, TypeError):        # a text that is no Unicode is bytes, which nothing takes
        return None
    return bytes(model.SerializeToString(deterministic=True))


def graphs(graph: GraphProto, depth: int = 0) -> Iterator[GraphProto]:
    """The graph and those in it."""
    yield graph
    if depth < DEEPEST:
        for a in (a for n in graph.node for a in n.attribute if a.HasField("g")):
            yield from graphs(a.g, depth + 1)


@cache
def operators() -> tuple[tuple[str, str], ...]:
    """Domain and name of every operator of ONNX."""
    return tuple(sorted({(s.domain, s.name) for s in defs.get_all_schemas()}))


def messages(root: Any) -> list[Any]:
    """Every message in a message."""
    found = [root]
    for m in found:
        if len(found) > 2000:
            break
        for f, value in m.ListFields():
            if f.type == Field.TYPE_MESSAGE:
                found += value if isinstance(value, Sequence) or hasattr(value, "add") else [value]
    return found


def anything(model: ModelProto, r: random.Random) -> bool:
    """Any field of any message: another value, none, one of another message, or one more."""
    every = messages(model)
    m = r.choice(every)
    f = r.choice(m.DESCRIPTOR.fields)
    if f.type == Field.TYPE_MESSAGE:
        return _message(m, f, every, r)
    if hasattr(getattr(m, f.name), "append"):
        values = list(getattr(m, f.name)[:4096])
        m.ClearField(f.name)
        getattr(m, f.name).extend(numbers.changed(values, r, lambda r, v: scalar(f, r, v)))
    elif r.random() < 0.2 and m.HasField(f.name):
        m.ClearField(f.name)
    else:
        setattr(m, f.name, scalar(f, r, getattr(m, f.name)))
    return True


def scalar(f: Any, r: random.Random, old: Any) -> Any:
    """Another value of a field."""
    if f.type in WHOLE:
        return numbers.whole(r, old or 0, *WHOLE[f.type])
    if f.type in (Field.TYPE_FLOAT, Field.TYPE_DOUBLE):
        return numbers.real(r, old or 0.0)
    if f.type == Field.TYPE_ENUM:
        return r.choice(f.enum_type.values).number
    text = r.choice((*TEXTS, old if isinstance(old, str) else ""))
    return text if f.type == Field.TYPE_STRING else text.encode()


def _message(m: Any, f: Any, every: Sequence[Any], r: random.Random) -> bool:
    like = [o for o in every if o.DESCRIPTOR is f.message_type and o.ByteSize() < 1 << 14]
    held = getattr(m, f.name)
    if hasattr(held, "add"):
        if held and r.random() < 0.4:
            del held[r.randrange(len(held))]
        elif like:
            held.add().ParseFromString(r.choice(like).SerializeToString())     # it may be within what is copied
        else:
            held.add()
    elif m.HasField(f.name) and r.random() < 0.4:
        m.ClearField(f.name)
    else:
        held.ParseFromString((r.choice(like) if like and r.random() < 0.8 else held).SerializeToString())
    return True


def attribute(graph: GraphProto, r: random.Random) -> bool:
    """An attribute with another value, of another type, or one more or less; often one that the operator knows."""
    node = _node(graph, r)
    if node is None:
        return False
    if node.attribute and r.random() < 0.75:
        a = r.choice(node.attribute)
    else:
        names = _attributes(node.domain, node.op_type) or (("axis", AttributeProto.INT),)
        name, kind = r.choice(names)
        a = node.attribute.add(name=name, type=kind)
    way = r.random()
    if way < 0.05:
        node.attribute.remove(a)
    elif way < 0.1:
        a.type = r.randrange(0, 15)
    elif a.type == AttributeProto.INT:
        a.i = numbers.whole(r, a.i)
    elif a.type == AttributeProto.FLOAT:
        a.f = numbers.real(r, a.f)
    elif a.type == AttributeProto.STRING:
        a.s = r.choice(TEXTS).encode()
    elif a.type == AttributeProto.INTS:
        a.ints[:] = numbers.changed(list(a.ints), r, numbers.whole)
    elif a.type == AttributeProto.FLOATS:
        a.floats[:] = numbers.changed(list(a.floats), r, numbers.real)
    elif a.type == AttributeProto.TENSOR:
        return tensor(a.t, r)
    else:
        return False
    return True


@cache
def _attributes(domain: str, name: str) -> tuple[tuple[str, int], ...]:
    try:
        known = defs.get_schema(name, 28, domain).attributes.values()
        return tuple((a.name, a.type.value) for a in known)  # type: ignore[attr-defined]
    except defs.SchemaError:
        return ()


def _node(graph: GraphProto, r: random.Random) -> NodeProto | None:
    return r.choice(graph.node) if graph.node else None


def renamed(graph: GraphProto, r: random.Random) -> bool:
    """A node of another operator, or of another domain."""
    node = _node(graph, r)
    if node is None:
        return False
    if r.random() < 0.8:
        node.domain, node.op_type = r.choice(operators())
    else:
        node.domain = r.choice(DOMAINS)
    return True


def rewired(graph: GraphProto, r: random.Random) -> bool:
    """A node that reads or writes other values, more or fewer of them; a graph with other outputs."""
    node = _node(graph, r)
    names = ["", *(p.name for p in graph.input), *(t.name for t in graph.initializer),
             *(o for n in graph.node for o in n.output)]
    if node is None:
        return False
    side = r.choice((node.input, node.input, node.output))
    side[:] = numbers.changed(list(side), r, lambda r, v: r.choice(names))
    return True


def retyped(graph: GraphProto, r: random.Random) -> bool:
    """An input, an output or a value of another type or shape."""
    ports = [*graph.input, *graph.input, *graph.output, *graph.value_info]
    if not ports:
        return False
    p = r.choice(ports)
    if r.random() < 0.05:
        p.ClearField("type")
        return True
    t = p.type.tensor_type
    if r.random() < 0.4:
        t.elem_type = r.randrange(28)
    elif r.random() < 0.1:
        t.ClearField("shape")
    elif t.shape.dim and r.random() < 0.7:
        d = r.choice(t.shape.dim)
        if r.random() < 0.2:
            d.dim_param = r.choice(("n", "m", "", "n+1", "?"))
        else:
            d.dim_value = r.choice(SIZES)
    elif t.shape.dim and r.random() < 0.5:
        del t.shape.dim[r.randrange(len(t.shape.dim))]
    else:
        t.shape.dim.add().dim_value = r.choice((1, 2, 3))
    return True


def initialiser(graph: GraphProto, r: random.Random) -> bool:
    """A constant with other dimensions, another type or other elements, or an input that becomes one."""
    if graph.input and r.random() < 0.15:
        return _fixed(graph, r)
    return tensor(r.choice(graph.initializer), r) if graph.initializer else False


def _fixed(graph: GraphProto, r: random.Random) -> bool:
    p = r.choice(graph.input)
    t = p.type.tensor_type
    dims = [d.dim_value for d in t.shape.dim]
    if any(not 0 <= n < 64 for n in dims) or len(dims) > 5 or t.elem_type not in (1, 6, 7, 2, 3, 9, 11):
        return False
    dtype = helper.tensor_dtype_to_np_dtype(t.elem_type)
    drawn = np.random.default_rng(r.randrange(1 << 32)).integers(-2, 4, dims)
    if drawn.size > 4096:
        return False
    graph.initializer.append(numpy_helper.from_array(drawn.astype(dtype), p.name))
    return True


def tensor(t: TensorProto, r: random.Random) -> bool:
    """A tensor with another of its fields or its bytes changed."""
    way = r.random()
    if way < 0.25:
        t.dims[:] = numbers.changed(list(t.dims), r, lambda r, v: r.choice(SIZES))
    elif way < 0.35:
        t.data_type = r.randrange(28)
    elif way < 0.85 and (t.raw_data or t.float_data or t.int64_data or t.int32_data):
        _elements(t, r)
    elif way < 0.92:
        t.data_location = r.choice((TensorProto.DEFAULT, TensorProto.EXTERNAL))
        t.external_data.add(key=r.choice(("location", "offset", "length", "x")),
                            value=r.choice(("../x", "x", "0", "-1", "99999999999999999999", "")))
    else:
        t.name = r.choice(("", "x", t.name))
    return True


def _elements(t: TensorProto, r: random.Random) -> None:
    if t.float_data:
        t.float_data[:] = numbers.changed(list(t.float_data), r, numbers.real)
    elif t.int64_data:
        t.int64_data[:] = numbers.changed(list(t.int64_data), r, numbers.whole)
    elif t.int32_data:
        t.int32_data[:] = numbers.changed(list(t.int32_data), r, lambda r, v: numbers.whole(r, v, -1 << 31, 1 << 31))
    else:
        t.raw_data = _raw(t, r)


def _raw(t: TensorProto, r: random.Random) -> bytes:
    """The bytes of a tensor with an element changed."""
    raw = bytearray(t.raw_data)
    width = {7: 8, 1: 4, 6: 4, 11: 8, 10: 2, 16: 2}.get(t.data_type, 1)
    at = r.randrange(max(len(raw) // width, 1)) * width
    if t.data_type in (1, 11):
        dtype = np.dtype("<f4" if width == 4 else "<f8")
        new = np.array(numbers.real(r), dtype).tobytes()
    else:
        old = int.from_bytes(raw[at:at + width], "little", signed=True)
        new = numbers.whole(r, old, -(1 << 8 * width - 1), 1 << 8 * width - 1).to_bytes(width, "little", signed=True)
    raw[at:at + width] = new
    return bytes(raw)


def nested(graph: GraphProto, r: random.Random) -> bool:
    """A node that gets a graph: a branch or a body, another node's or this graph itself."""
    node = _node(graph, r)
    held = [a.g for n in graph.node for a in n.attribute if a.HasField("g")]
    if node is None or graph.ByteSize() > 1 << 13:
        return False
    bodies = [a for a in node.attribute if a.HasField("g")]
    copy = GraphProto()
    copy.CopyFrom(r.choice([*held, graph]))
    if bodies:
        r.choice(bodies).g.CopyFrom(copy)
    else:
        name = r.choice(("then_branch", "else_branch", "body"))
        node.attribute.add(name=name, type=AttributeProto.GRAPH).g.CopyFrom(copy)
    return True


def moved(graph: GraphProto, r: random.Random) -> bool:
    """Nodes in another order, one twice, or one less."""
    nodes = [NodeProto.FromString(n.SerializeToString()) for n in graph.node]
    del graph.node[:]
    graph.node.extend(numbers.changed(nodes, r, lambda r, v: r.choice(nodes)) if nodes else [])
    return True


def undeclared(graph: GraphProto, r: random.Random) -> bool:
    """Outputs or values of which the file says nothing, so that what they are is found out."""
    for p in (*graph.output, *graph.value_info):
        p.ClearField("type")
    return True


def versioned(model: ModelProto, r: random.Random) -> bool:
    """Another version of the format or of an operator set, or one more set."""
    if r.random() < 0.2:
        model.ir_version = r.choice((0, 1, 3, 4, 7, 8, 10, 13, 14, 99))
    elif model.opset_import and r.random() < 0.7:
        r.choice(model.opset_import).version = r.choice((*range(1, 29), 0, -1, 99))
    else:
        model.opset_import.add(domain=r.choice(DOMAINS), version=r.randrange(1, 29))
    return True


def functional(model: ModelProto, r: random.Random) -> bool:
    """A node moved into a function that it then calls."""
    node = _node(model.graph, r)
    if node is None or node.domain == "local":
        return False
    name = f"f{len(model.functions)}"
    f = model.functions.add(name=name, domain="local", input=list(dict.fromkeys(n for n in node.input if n)),
                            output=list(dict.fromkeys(n for n in node.output if n)))
    f.node.add().CopyFrom(node)
    f.opset_import.extend(model.opset_import)
    if not any(o.domain == "local" for o in model.opset_import):
        model.opset_import.add(domain="local", version=1)
    node.Clear()
    node.op_type, node.domain = name, "local"
    node.input.extend(f.input)
    node.output.extend(f.output)
    return True


WHOLES = (anything, versioned, functional)
EDITS: tuple[Callable[[Any, random.Random], bool], ...] = (
    anything, anything, attribute, attribute, attribute, renamed, rewired, rewired, retyped, retyped, initialiser,
    initialiser, nested, moved, undeclared, versioned, functional)
