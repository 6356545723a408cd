"""What a file may cost, by the command: limits that are exceeded, files that would take all time and memory there are.

No case computes what it asks for: memory is bounded while each of them is refused.
"""
from __future__ import annotations

import json
import resource
import zipfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from sample_models import SAMPLES
from scarce import scarce
from tflite_writer import TFLiteWriter

from nnx_convert import LimitError, convert, limited
from nnx_convert.artifact.container import pack, unpack
from nnx_convert.artifact.encode import encode
from nnx_convert.cli import entry
from nnx_convert.frontends.tflite import metadata

F, BIG = "float32", 2 ** 31 - 1
#: Bytes that the process may hold beside what it holds already, and seconds of processor time that a case may take.
ROOM, PATIENCE = 1 << 30, 6.0


def chain(count: int) -> bytes:
    """A TFLite file of so many operators."""
    w = TFLiteWriter()
    first = last = w.tensor("x", F, (2,))
    for i in range(count):
        y = w.tensor(f"y{i}", F, (2,))
        w.op("RELU", [last], [y])
        last = y
    return w.finish([first], [last])


def filled(dims: list[int]) -> bytes:
    """A TFLite file that fills a tensor of these sizes and adds it to an input."""
    w = TFLiteWriter()
    size, value = w.tensor("d", "int32", (len(dims),), np.array(dims)), w.tensor("v", F, (), np.array(1, np.float32))
    y, x, z = w.tensor("y", F, dims), w.tensor("x", F, (1,)), w.tensor("z", F, dims)
    w.op("FILL", [size, value], [y])
    w.op("ADD", [y, x], [z], "AddOptions")
    return w.finish([x], [z])


def through(op: str, shape: list[int], wide: list[int]) -> bytes:
    """A TFLite file of one operator on inputs of these sizes."""
    w = TFLiteWriter()
    both = [max(sizes) for sizes in zip(shape, wide, strict=True)]
    x, y, z = w.tensor("x", F, shape), w.tensor("y", F, wide), w.tensor("z", F, both)
    w.op(op, [x, y], [z])
    return w.finish([x, y], [z])


def joined(count: int) -> bytes:
    """A TFLite file of one operator on so many inputs."""
    w = TFLiteWriter()
    parts, y = [w.tensor(f"x{i}", F, (1,)) for i in range(count)], w.tensor("y", F, (count,))
    w.op("CONCATENATION", parts, [y], "ConcatenationOptions")
    return w.finish(parts, [y])


def looping(grows: bool) -> bytes:
    """A TFLite file with a loop that does not end, whose value is twice as long after each round where it `grows`."""
    w = TFLiteWriter()

    def value(name: str) -> int:
        return w.tensor(name, F, (2,), signature=(-1,) if grows else None)
    x, y = value("x"), value("y")
    w.op("WHILE", [x], [y], "WhileOptions", {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2})
    w.ends([x], [y])
    w.subgraph("cond")
    w.ends([value("a")], [w.tensor("on", "bool", (), np.array(True))])
    w.subgraph("body")
    a, b = value("a"), value("b")
    if grows:
        w.op("CONCATENATION", [a, a], [b], "ConcatenationOptions")
    else:
        w.op("RELU", [a], [b])
    w.ends([a], [b])
    return w.finish([x], [y])


def branching(depth: int) -> bytes:
    """A TFLite file of branches within branches, both of them the same."""
    w = TFLiteWriter()
    for level in range(depth + 1):
        if level:
            w.subgraph(f"g{level}")
        x, y = w.tensor("x", F, (2,)), w.tensor("y", F, (2,))
        if level < depth:
            c = w.tensor("c", "bool", (), np.array(True)) if level else w.tensor("c", "bool", ())
            w.op("IF", [c, x], [y], "IfOptions", {"ThenSubgraphIndex": level + 1, "ElseSubgraphIndex": level + 1})
        else:
            w.op("RELU", [x], [y])
        if level:
            w.ends([x], [y])
        else:
            ends = [c, x], [y]
            w.ends(*ends)
    return w.finish(*ends)


def onnx(*nodes: Any, opset: int = 17, gives: int = TensorProto.FLOAT, **constants: Any) -> bytes:
    """An ONNX file of these nodes on x [1], which give y."""
    ends = ("x", TensorProto.FLOAT, [1]), ("y", gives, None)
    ports = [helper.make_tensor_value_info(*end) for end in ends]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], [
        numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    found: bytes = model.SerializeToString()
    return found


def node(op: str, inputs: str, output: str = "y", **attributes: Any) -> Any:
    return helper.make_node(op, inputs.split(), [output], **attributes)


def branch(op: str) -> Any:
    """A branch of one node."""
    port = helper.make_tensor_value_info("z", TensorProto.FLOAT, None)
    return helper.make_graph([node(op, "x", "z")], op, [], [port])


def doubled(times: int) -> bytes:
    """A value that is twice as long after each of so many nodes."""
    names = ["x", *(f"t{i}" for i in range(1, times)), "y"]
    return onnx(*(node("Concat", f"{a} {a}", b, axis=0) for a, b in pairwise(names)))


def squared(constant: int) -> bytes:
    """The product of constants of this size, over and over."""
    products = [node("MatMul", f"{f'm{i}' if i else 'a'} a", f"m{i + 1}") for i in range(40)]
    return onnx(node("ConstantOfShape", "s", "a"), *products, node("Add", "m40 x"), s=np.array([constant, constant]))


def lengthened(times: int, *more: Any) -> bytes:
    """A text that is twice as long after each of so many nodes."""
    joined = (node("StringConcat", f"t{i} t{i}", f"t{i + 1}") for i in range(times - 1))
    return onnx(*joined, *(more or (node("Identity", f"t{times - 1}"),)), opset=20, gives=TensorProto.STRING,
                t0=np.array([b"a"], object))


def skipping(size: int) -> bytes:
    """Pairs of so many elements, however far they are apart."""
    pairs: dict[str, Any] = {"min_gram_length": 2, "max_gram_length": 2, "max_skip_count": size, "mode": "TF"}
    return onnx(node("Cast", "x", "i", to=TensorProto.INT64), node("Expand", "i s", "e"),
                node("TfIdfVectorizer", "e", **pairs, ngram_counts=[0, 0], ngram_indexes=[0], pool_int64s=[1, 2]),
                s=np.array([size]))


def recurrent(steps: int) -> bytes:
    """An RNN of so many steps of an empty batch."""
    return onnx(node("Expand", "x s", "e"), node("RNN", "e w r", hidden_size=2), s=np.array([steps, 0, 3]),
                w=np.ones((1, 2, 3), np.float32), r=np.ones((1, 2, 2), np.float32))


def edited(change: Callable[[Any], object], sample: str = "dense") -> bytes:
    """A .nnx file with another header, whose checksums are right."""
    header, tail = unpack(b"".join(encode(SAMPLES[sample]())))
    found = json.loads(json.dumps(header))
    change(found)
    return b"".join(pack(found, [bytes(tail)]))


def renumbered(header: Any) -> None:
    """What is computed is as large as operands may be."""
    for o in header["models"][-1]["operands"]:
        if "blob" not in o and "hex" not in o:
            o["dims"] = [BIG for _ in o["dims"]]


#: Files: what they are called, what is done with them, how that ends and what is said.
CASES: dict[str, tuple[Callable[[], bytes], list[str], int, str]] = {
    "few operators": (lambda: chain(9), ["check", "--limit", "operators=8"], 3, "NNX104 m: its operators are 9, 8 at"),
    "few graphs": (lambda: branching(3), ["check", "--limit", "subgraphs=3"], 3, "its subgraphs are 4, 3 at most"),
    "few graphs of ONNX": (lambda: onnx(node("If", "c", then_branch=branch("Relu"), else_branch=branch("Exp")),
                                        c=np.array(True)),
                           ["check", "--limit", "subgraphs=2"], 3, "its graphs are 3, 2 at most"),
    "few levels": (lambda: branching(3), ["inspect", "--limit", "depth=3"], 3, "subgraphs are nested more than 3 deep"),
    "levels": (lambda: branching(15), ["run", "--random", "1", "--backend", "numpy"], 0, ""),
    "too many levels": (lambda: branching(40), ["check"], 3, "subgraphs are nested more than 16 deep"),
    "few nodes": (lambda: doubled(5), ["check", "--limit", "operators=4"], 3, "has more than 4 nodes"),
    "few bytes": (lambda: chain(1), ["check", "--limit", "file_bytes=64"], 3, "64 at most (--limit file_bytes=VALUE"),
    "a small tensor": (lambda: filled([3, 4]), ["run", "--random", "1", "--limit", "tensor_bytes=47"], 5,
                       "48 bytes, 47 at most"),
    "a short time": (lambda: chain(200), ["check", "--limit", "seconds=0.000001"], 5,
                     "takes longer than 1e-06 seconds"),
    "little work": (lambda: squared(100),
                    ["run", "--random", "1", "--limit", "folding_macs=1", "--limit", "macs=3M"], 5,
                    "op 4 MatMul: a run takes 4,000,000 multiply-adds up to here, 3,145,728 at most"),
    "a wrong limit": (lambda: chain(1), ["check", "--limit", "bytes=1"], 2, "there is no limit 'bytes'"),
    "an input without end": (lambda: through("ADD", [BIG, BIG], [1, 1]), ["run", "--random", "1"], 5,
                             "the input 'x' needs 18,446,744,056,529,682,436 bytes"),
    "two inputs that spread": (lambda: through("ADD", [1 << 20, 1], [1, 1 << 20]), ["run", "--random", "1"], 5,
                               "output 0, [1048576, 1048576], needs 4,398,046,511,104 bytes"),
    "a constant without end": (lambda: filled([BIG, BIG]), ["run", "--random", "1"], 3,
                               "a constant of shape [2147483647, 2147483647] cannot be made up"),
    "sizes that wrap": (lambda: filled([1 << 16] * 4), ["run", "--random", "1"], 3, "cannot be made up"),
    "a loop without end": (lambda: looping(False), ["run", "--random", "1", "--limit", "rounds=99"], 5,
                           "more than 99 rounds"),
    "a loop that grows": (lambda: looping(True),
                          ["run", "--random", "1", "--shape", "x=2", "--limit", "total_bytes=64M"], 5,
                          "67,108,864 at most"),
    "a value that grows": (lambda: doubled(60), ["run", "--random", "1"], 3, "gives the shape [2147483648]"),
    "a value that grows less": (lambda: doubled(29), ["run", "--random", "1", "--limit", "total_bytes=1G"], 5,
                                "1,073,741,824 at most"),
    "very many arrays": (lambda: joined(3000), ["bench", "--runs", "1", "--backend", "native"], 0, ""),
    "a text that grows": (lambda: lengthened(60), ["run", "--random", "1", "--limit", "total_bytes=256M"], 5,
                          "joined, the texts, beside their parts"),
    "skips without end": (lambda: skipping(1 << 17), ["run", "--random", "1", "--limit", "seconds=1"], 5,
                          "the run takes longer than 1 seconds"),
    "steps of nothing": (lambda: recurrent(1 << 26), ["run", "--random", "1", "--backend", "numpy"], 0, ""),
    "constant texts that grow": (lambda: lengthened(60), ["convert", "--limit", "folding_bytes=1M"], 0, ""),
    "a text of very many parts": (lambda: lengthened(27, node("StringSplit", "t26", delimiter="a")),
                                  ["run", "--random", "1", "--backend", "numpy", "--limit", "total_bytes=1G"], 5,
                                  "the parts of the texts needs"),
    "a size beyond 32 bits": (lambda: onnx(node("Einsum", "w w w w", equation="ab,cd,ef,gh->abcdefgh"),
                                           w=np.ones((100, 100), np.float32)), ["check"], 0, ""),
    "products without end": (lambda: squared(3000), ["check"], 0, ""),
    "a shape of a file": (lambda: edited(renumbered), ["run", "--random", "1"], 3, "operation 0 FULLY_CONNECTED"),
    "half a character": (lambda: edited(lambda h: h["models"][-1].update(notes=["\ud800"])), ["check"], 3,
                         "for a text"),
    "models without end": (lambda: edited(lambda h: h.update(models=h["models"] * 200)),
                           ["check", "--limit", "subgraphs=99"], 3, "its models are 100, 99 at most"),
}


@pytest.fixture
def bounded() -> Iterator[None]:
    """Little memory, so that what is not refused fails."""
    with scarce(ROOM):
        yield


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("name", CASES)
def test_a_file_is_refused_before_it_costs_anything(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    make, (command, *options), code, said = CASES[name]
    monkeypatch.chdir(tmp_path)
    Path("m").write_bytes(make())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    assert entry.ended([command, "m", *options]) == code
    err = capsys.readouterr().err
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < PATIENCE
    assert said in err and err.count("\n") == (code != 0) and len(err) < 600
    assert "out of memory" not in err and "does not suffice" not in err


def test_constants_are_computed_ahead_within_limits() -> None:
    def operations() -> int:
        return len(convert(squared(20)).operations)
    few = operations()
    with limited(folding_macs=20 ** 3 * 10):
        some = operations()
    with limited(folding_bytes=1):
        many = operations()
    assert few < some < many


def test_an_entry_of_ci_keeps_the_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                         capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.tflite").write_bytes(chain(9))
    Path("ci.toml").write_text("[models.m]\npath = 'm.tflite'\n")
    assert entry.ended(["ci", "ci.toml", "--jobs", "1", "--limit", "operators=8"]) == 3
    assert "its operators are 9, 8 at most" in " ".join(capsys.readouterr().out.split())


def test_limits_that_others_swallow_are_said_at_the_next_operation() -> None:
    with limited(seconds=1e-6), pytest.raises(LimitError, match="the conversion takes longer"):
        convert(chain(20))


@pytest.mark.parametrize("before", [b"", bytes(metadata.PACKED)], ids=["small", "large"])
def test_what_is_packed_behind_a_model_is_read_from_its_end(before: bytes, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(chain(1) + before)
    with zipfile.ZipFile(tmp_path / "m", "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("other.txt", b"\n" * (1 << 26))
        packed.writestr("labels.txt", b"cat\n")
    source = convert(tmp_path / "m").rim.source
    assert source is not None and (source.files, source.labels) == (("other.txt", "labels.txt"), ("cat",))
