"""The only place that joins the stages: a file becomes a Model, a Model becomes something that runs."""
from __future__ import annotations

import mmap
import operator
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from . import artifact
from .errors import FormatError, NnxError, StrictError, Unsupported, UsageError
from .garbage import unsearched
from .model import Model
from .reading import mapped, reason
from .resources import folds, timed, within
from .target import Here, Target
from .types import STR, Port, Shape, Tensor, known

if TYPE_CHECKING:
    from .graph import Graph, Node
    from .lowering.rewrite import Event, Pass
    from .runtime.codegen.kept import Keeper
    from .runtime.compiled import CompiledModel, Taps


class Readable(Protocol):
    """A file opened in binary mode, or what reads like one."""

    def read(self) -> bytes:
        """All the bytes that are left."""


Source = str | Path | bytes | bytearray | memoryview | Readable
Data = bytes | mmap.mmap
#: Called with the name of the stage that begins.
Progress = Callable[[str], None]
#: What this machine takes: its operations are those of every level.
HERE = Here(level=8)


def convert(source: Source, target: Target = Target(), *, shapes: Mapping[str, Shape] | None = None,  # noqa: B008
            strict: bool = False, progress: Progress | None = None, signature: str | None = None,
            folder: str | Path | None = None, passes: Sequence[Pass] = (), trace: list[Event] | None = None) -> Model:
    """A TFLite or an ONNX model (a path, a file object or the bytes) as an NNAPI model for a target.

    The format is recognised by content. `folder`: where the external data of a model given as bytes are. `shapes`
    gives input sizes by name where the file leaves them open or the caller wants others. `strict` refuses
    (`StrictError`) what the target does not take, where it would run as a host operation. `signature` names the entry
    point to convert where that is not the main graph; each has variables of its own then. `passes` are the caller's
    own, which lowering begins with: see `register_pass`. `trace` is given an `Event` for each thing that a rule did and
    for each refusal. Raises `FormatError` on a broken file, `Unsupported` on what has no counterpart.
    """
    said = progress or (lambda stage: None)
    said("reading")
    data, name = read(source)
    try:
        with timed("the conversion"), unsearched():
            return _compiled(data, target, sizes(shapes), strict, said, signature, folder_of(source, folder), passes,
                             trace)
    except NnxError as error:
        raise error.at(name) from error


def sizes(shapes: Mapping[str, Shape] | None) -> dict[str, Shape]:
    """The input sizes a caller asks for, by name; raises `UsageError` on what is none."""
    if not isinstance(shapes, Mapping | None):
        raise UsageError(f"shapes is a mapping from names to sizes, not {type(shapes).__name__}")
    try:
        return {name: tuple(map(operator.index, shape)) for name, shape in (shapes or {}).items()}
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"shapes has what are no sizes ({error})") from error


def _compiled(data: Data, target: Target, shapes: Mapping[str, Shape], strict: bool, said: Progress,
              signature: str | None = None, folder: Path | None = None, passes: Sequence[Pass] = (),
              told: list[Event] | None = None) -> Model:
    graph = import_graph(data, shapes, signature, folder)
    said("lowering")
    if strict:
        target = replace(target, hybrid="float", int64="narrow")       # the exact ways are the host's
    return lowered(graph, target, told, passes=passes, strict=strict, said=said)


def lowered(graph: Graph, target: Target, told: list[Event] | None = None, *, passes: Sequence[Pass] = (),
            strict: bool = False, said: Progress = lambda stage: None) -> Model:
    """The model of an imported graph for a target; the other arguments are those of `convert`, `told` its trace."""
    from .lowering.flatten import flatten
    from .lowering.pipeline import lower
    with timed("lowering it"):
        legal, trace = lower(graph, target, evaluate, passes)
        if told is not None:
            told += trace
        if strict:
            refuse_host(legal, trace, target)
        said("checking")
        return flatten(legal, tuple(dict.fromkeys(str(e) for e in trace if e.did and e.why)))


def at_size_1(ports: Sequence[Port]) -> dict[str, Shape]:
    """The shapes of inputs with open sizes, each of these 1: what can be measured of a model that leaves some open."""
    return {p.name: tuple(n or 1 for n in p.shape) for p in ports if p.shape and None in p.shape}


def read(source: Source) -> tuple[Data, str]:
    """The bytes of a model and what to call it; those of a JSON file are the bytes of the .nnx file that it stands for.

    Raises `FormatError` where the file cannot be read, `UsageError` on what is neither path, bytes nor binary file.
    """
    data, name = _opened(source)
    within("file_bytes", len(data), "its bytes are", name)
    if data[:64].lstrip()[:1] != b"{":
        return data, name
    from .artifact.as_json import parsed
    try:
        within("text_bytes", len(data), "its bytes are")
        return artifact.to_bytes(parsed(bytes(data), folder_of(source))), name
    except NnxError as error:
        raise error.at(name) from error


def _opened(source: Source) -> tuple[Data, str]:
    """The bytes as they are."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), "model"
    if not isinstance(source, str | Path):
        return _read(source), Path(path_of(source) or "model").name
    return mapped(source), Path(source).name


def _read(source: Readable) -> bytes:
    """What a file object holds from where it stands."""
    try:
        data = source.read()
    except AttributeError:
        data = None
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot be read: {reason(error)}") from error
    if not isinstance(data, bytes | bytearray | memoryview):
        raise UsageError(f"a model is a path, bytes or a file opened in binary mode, not {type(source).__name__}")
    return bytes(data)


def path_of(source: Source) -> str | None:
    """The path of a model; None of bytes, and of a file object whose name is not that of its file."""
    if isinstance(source, str | Path):
        return str(source)
    try:
        name, handle = getattr(source, "name", None), getattr(source, "fileno", lambda: -1)()
        named = isinstance(name, str | Path) and os.path.samestat(os.stat(name), os.fstat(handle))
    except (OSError, ValueError):
        return None
    return str(name) if named else None


def folder_of(source: Source, folder: str | Path | None = None) -> Path | None:
    """Where a model's external data may be: in the folder given, else beside its file."""
    if folder is not None:
        return Path(folder)
    path = path_of(source)
    return None if path is None else Path(path).parent


def kind(data: Data) -> str:
    """The format by content: tflite, nnx, onnx, or nothing known."""
    if data[4:8] == b"TFL3":
        return "tflite"
    if data[:len(artifact.MAGIC)] == artifact.MAGIC:
        return "nnx"
    # An ONNX file is a protobuf message without a mark; its first field is the IR version, a small number.
    first = len(data) > 16 and data[0] == 0x08 and 0 < data[1] < 0x40
    return "onnx" if first and data[2] in b"\x12\x1a\x22\x28\x32\x3a\x42\x72" else ""


def import_graph(data: Data, shapes: Mapping[str, Shape], signature: str | None = None,
                 folder: Path | None = None) -> Graph:
    """The file's main graph, or that of a signature, in the operations of the table."""
    with timed("reading it"):
        return _imported(data, shapes, signature, folder)


def _imported(data: Data, shapes: Mapping[str, Shape], signature: str | None, folder: Path | None) -> Graph:
    match kind(data):
        case "tflite":
            from .frontends.tflite.importer import load as load_tflite
            return load_tflite(data, shapes, signature, evaluate)
        case "onnx":
            if signature is not None:
                raise UsageError("an ONNX model has no signatures")
            from .frontends.onnx.importer import load as load_onnx
            return load_onnx(data, shapes, evaluate, folder)
        case "nnx":
            raise UsageError("is a converted model already", hint="run it, or convert its source file")
    if data[4:8] == b"ORTM":
        raise Unsupported("is in ONNX Runtime's own format", hint="give the .onnx file that it was made from")
    raise FormatError("is neither a TFLite nor an ONNX model" if len(data) else "is empty")


def refuse_host(graph: Graph, trace: Sequence[Event], target: Target) -> None:
    """Raise `StrictError` where a graph has operations that the target does not take."""
    host = [n for n in graph.walk() if n.op.host]
    if not host:
        return
    why = next((e.why for e in trace if e.did and e.rule == "to_host" and e.at == host[0].at), host[0].op.name)
    more = f"; and {len(host) - 1} more" if len(host) > 1 else ""
    raise StrictError(f"{target} does not take it: {why}{more}", str(host[0].at),
                      "without strict it runs on the host, and the report names all that does")


def evaluate(node: Node, values: Sequence[Any]) -> Sequence[Any] | None:
    """Compute a node whose operands are constants, with the runtime's kernels; None where there is none, and where the
    conversion has computed as much ahead as it may.
    """
    from .graph import placed
    from .runtime.bind import once
    from .runtime.kernel import NeedsValue
    try:
        args, outs = node.op.canonical(placed(node.op, node.form, node.args)), tuple(v.tensor for v in node.outputs)
        if not folds(*_cost(node, args, outs)):
            return None
        return once(node.op, args, outs)
    except NeedsValue:
        return None


def _cost(node: Node, args: Mapping[str, Any], outs: Sequence[Tensor]) -> tuple[int, int]:
    """The bytes that a node's outputs take, and its multiply-adds; each element that it reads counts as one.

    A text is as long as the longest that the node reads together, of each input one.
    """
    from .ops.macs import multiplied
    given = [(v.type, v.tensor.data) for v in node.inputs if v.tensor.data is not None]
    read = sum(a.size for _, a in given)
    longest = sum(max(map(len, a.flat), default=0) for kind, a in given if kind == STR)
    if any(t.dims is None or not all(map(known, t.dims)) for t in outs):
        return longest, read
    size = sum(t.size * (t.type.dtype.itemsize + (longest if t.type == STR else 0)) for t in outs)
    return size, read + multiplied(node.op, args, outs)


def ready(data: Data, folder: Path | None, shapes: Mapping[str, Shape], threads: int | None, backend: str,
          rounding: str = "reference", target: Target = HERE) -> CompiledModel:
    """What a file's bytes compile to, lowered for a target, from its kept program where there is one."""
    from .runtime.backends import backend_of
    from .runtime.compiled import CompiledModel
    from .runtime.outline import Outline

    def make() -> Model:
        return artifact.from_bytes(data) if kind(data) == "nnx" else _compiled(
            data, target, shapes, False, lambda stage: None, folder=folder)
    options = target, sorted(shapes.items()), threads, rounding
    keeper = _keeper(data, options) if backend_of(backend, rounding).takes else None
    known = keeper and (keeper.find(make) or keeper.model())
    lasting = isinstance(known, Outline) or keeper is not None and known is None and not _outside(data)
    taps = None if kind(data) == "nnx" else _taps(data, folder, shapes, target, backend, threads)
    compiled = CompiledModel(known or make(), threads=threads, backend=backend, rounding=rounding,
                             keep=keeper.keep if keeper and lasting else None, taps=taps)
    if shapes and (known is None or isinstance(known, Model)):
        compiled.prepare(shapes)
    return compiled


def _taps(data: Data, folder: Path | None, shapes: Mapping[str, Shape], target: Target, backend: str,
          threads: int | None) -> Taps:
    """The file's tensors by name; what finds them is imported with the first that is asked for."""
    found: list[Taps] = []

    def tapped(names: Sequence[str], inputs: Sequence[Any]) -> Mapping[str, Any]:
        if not found:
            from .verify.tapping import Tapping
            found.append(Tapping(data, folder, shapes, target, backend, threads))
        return found[0](names, inputs)
    return tapped


def _keeper(data: Data, options: object) -> Keeper | None:
    """Where the program of a file is kept; None where a user's own operators or passes take part in what it is."""
    for module, own in (("ops.custom", "CUSTOM_OPS"), ("lowering.pipeline", "PASSES")):
        if getattr(sys.modules.get(f"{__package__}.{module}"), own, None):
            return None
    from .runtime.codegen.kept import keeper
    return keeper(data, options, kind(data) == "nnx")


def _outside(data: Data) -> bool:
    """Whether a file may have data in other files: then it has their key in it."""
    return kind(data) == "onnx" and data.find(b"location") >= 0


def load(path: str | Path) -> Model:
    """Read a .nnx file, memory-mapped; raises `ArtifactError` where it is not whole."""
    return artifact.load(path)


def compile(model: Model | Source, *, threads: int | None = None, shapes: Mapping[str, Shape] | None = None,
            backend: str = "auto", rounding: str = "reference", folder: str | Path | None = None) -> CompiledModel:
    """A model that runs on this machine, from a Model, a source file or a .nnx file (by path, file object or bytes).

    `threads`: how many a run uses at most, all cores by default; what is done sooner alone has one. `shapes`
    compiles for these input sizes now, not at the first run. `backend`: "numpy", "native", or "auto": what the
    variable NNX_BACKEND names, else native code for the first eight sets of input sizes and NumPy for further ones
    (without llvmlite, for all of them, which a warning says once). `rounding`: "reference", to the bit what the
    operations are defined to give, or "fast", to the bit what XNNPACK gives for convolutions, products, sums and means
    of 8-bit numbers; for backend "native" only. `folder`: as for `convert`.
    Raises `FormatError` and `Unsupported` as `convert` does, `UsageError` on shapes or options that make no sense.
    """
    from .runtime.compiled import CompiledModel
    name = ""
    try:
        wanted = sizes(shapes)
        if not isinstance(model, Model):
            data, name = read(model)
            with unsearched():
                return ready(data, folder_of(model, folder), wanted, threads, backend, rounding)
        compiled = CompiledModel(model, threads=threads, backend=backend, rounding=rounding)
        if wanted:
            compiled.prepare(wanted)
        return compiled
    except NnxError as error:
        raise error.at(name) from error
