"""Operand types as NNAPI numbers them, and what is known of a value before it is computed."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any, TypeGuard

import numpy as np

from .codes import OperandCode
from .frozen import frozen
# As NAME is what the type checker takes for handing a name on.
from .symbols import UNKNOWN as UNKNOWN, Undecided as Undecided, Unknown as Unknown  # noqa: PLC0414
from .symbols import differ as differ, known as known, same as same, symbol as symbol  # noqa: PLC0414

#: The short name inside the package.
Type = OperandCode

F32, F16, I32, B8 = Type.TENSOR_FLOAT32, Type.TENSOR_FLOAT16, Type.TENSOR_INT32, Type.TENSOR_BOOL8
Q8, Q8S = Type.TENSOR_QUANT8_ASYMM, Type.TENSOR_QUANT8_ASYMM_SIGNED
QS, QPC = Type.TENSOR_QUANT8_SYMM, Type.TENSOR_QUANT8_SYMM_PER_CHANNEL
Q16A, Q16S = Type.TENSOR_QUANT16_ASYMM, Type.TENSOR_QUANT16_SYMM
I64, F64, I16 = Type.TENSOR_INT64, Type.TENSOR_FLOAT64, Type.TENSOR_INT16
U32, U64, C64 = Type.TENSOR_UINT32, Type.TENSOR_UINT64, Type.TENSOR_COMPLEX64
BF16, F8E4M3FN, F8E4M3FNUZ = Type.TENSOR_BFLOAT16, Type.TENSOR_FLOAT8_E4M3FN, Type.TENSOR_FLOAT8_E4M3FNUZ
F8E5M2, F8E5M2FNUZ, F8E8M0 = Type.TENSOR_FLOAT8_E5M2, Type.TENSOR_FLOAT8_E5M2FNUZ, Type.TENSOR_FLOAT8_E8M0
F4E2M1, I4, U4, I2, U2 = (
    Type.TENSOR_FLOAT4_E2M1, Type.TENSOR_INT4, Type.TENSOR_UINT4, Type.TENSOR_INT2, Type.TENSOR_UINT2)
C128 = Type.TENSOR_COMPLEX128
#: Floats and integers of 16 bits and less that NumPy does not compute with; 4 and 2 bits take a byte each.
NARROW_FLOATS = (BF16, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0, F4E2M1)
NARROW_INTS = (I4, U4, I2, U2)
HOST_TYPES = (I64, F64, I16, U32, C64, U64, C128, *NARROW_FLOATS, *NARROW_INTS)
#: Types whose elements are real or complex numbers.
REALS = (F32, F16, F64, C64, C128, *NARROW_FLOATS)
#: Texts, as arrays of `bytes` objects: only operations that move elements take them.
STR = Type.TENSOR_STRING
#: A sequence, an optional value (none or one) or a map: objects along one axis, each an array, such a list or a dict.
LIST = Type.TENSOR_LIST
#: What has no place in an arena.
OBJECTS = (STR, LIST)
TENSORS = (F32, F16, I32, B8, Q8, Q8S, QS, QPC, Q16A, Q16S)

#: The quantised bytes that operations compute with, on one grid each.
BYTES = (Q8, Q8S)
#: Zero points a quantised type may have.
ZERO_POINTS = {Q8: range(256), Q8S: range(-128, 128), Q16A: range(65536), QS: range(1), Q16S: range(1)}


Shape = tuple[int, ...]
Array = np.ndarray[Any, Any]
#: The most axes that an operand has, whatever a file asks for: NumPy counts to 64, and some kernels split each in two.
MOST_AXES = 32
#: More elements than any list of axes, sizes or indices that inference looks at.
LONGEST = 1 << 16


def sharper(a: Shape | None, b: Shape | None) -> Shape | None:
    """What two descriptions of one value together know of its sizes."""
    if a is None or b is None:
        return b if a is None else a
    return tuple(m if known(m) or not known(n) and m is not UNKNOWN else n for m, n in zip(a, b, strict=True))


def maybe(compute: Callable[..., int], *args: Any) -> int:
    """The number, or UNKNOWN where computing it meets an undecided question."""
    try:
        return compute(*args)
    except Undecided:
        return UNKNOWN


@frozen
class Quant:
    """real = scale * (q - zero)."""

    scale: float
    zero: int = 0


@frozen
class ChannelQuant:
    """real = scales[c] * q, c running along `axis`."""

    scales: tuple[float, ...]
    axis: int


@frozen
class Tensor:
    """What is known of a tensor: type, dimensions, quantisation, and its value when it is constant.

    `dims` is None when not even the rank is known. `quant` is None on a type without one and, in an
    inferred output, where the operation leaves the choice to the output operand. `omittable`: a model
    input, which the caller may leave out at run time where an operation allows that; see `given`.
    """

    type: Type
    dims: Shape | None
    quant: Quant | ChannelQuant | None = None
    data: np.ndarray | None = field(default=None, compare=False, repr=False)
    omittable: bool = field(default=False, compare=False, repr=False)

    @property
    def shape(self) -> Shape:
        """The dimensions; raises `Undecided` where the rank is not known."""
        if self.dims is None:
            raise Undecided
        return self.dims

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return product(self.shape)

    @property
    def scale(self) -> float:
        """The scale of its quantisation; 0 without one."""
        return self.quant.scale if isinstance(self.quant, Quant) else 0.0

    def like(self, shape: Shape) -> Tensor:
        """Same type and quantisation, another shape."""
        return Tensor(self.type, shape, self.quant)

    def free(self, shape: Shape) -> Tensor:
        """Same type, another shape; the output operand chooses its quantisation."""
        return Tensor(self.type, shape)

    def ints(self) -> tuple[int, ...]:
        """The elements of an index tensor, flattened; each UNKNOWN where it is not constant.

        A file may claim any size for one that is not: a list of more than `LONGEST` numbers is not made.
        """
        if self.data is None:
            if self.size > LONGEST:
                raise Undecided
            return (UNKNOWN,) * int(self.size)
        return tuple(int(v) for v in self.data.reshape(-1))

    def agrees(self, other: Tensor) -> bool:
        """Whether both can describe one value: UNKNOWN dimensions and a free quantisation fit all."""
        if self.type != other.type:
            return False
        if self.quant and other.quant and self.quant != other.quant:
            return False
        if self.dims is None or other.dims is None:
            return True
        return len(self.dims) == len(other.dims) and all(
            not differ(a, b) for a, b in zip(self.dims, other.dims, strict=True))


@frozen
class Port:
    """A model input or output as its user sees it: the name, NumPy type, shape and grid of the source file.

    None stands for a size that only the caller knows, and for a shape of which not even the rank is known.
    A `state` is written by one run and read by the next: an input and an output of the same name. It starts with
    the elements `initial`, as the user sees them; None is real zero. `range` is the least and the greatest real
    value the file says to expect, `norm` the means and the deviations its metadata normalise an image with. `sizes`
    are the names of its sizes, "" where one has none, or nothing at all: one name is one size of all inputs, of an
    output it may be a formula of these.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...] | None
    quant: Quant | ChannelQuant | None = None
    state: bool = False
    initial: np.ndarray | None = field(default=None, compare=False, repr=False)
    range: tuple[float, float] | None = None
    norm: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    sizes: tuple[str, ...] = ()


@frozen
class Entry:
    """A signature of the source file: the names it gives to ports, each beside the port's own."""

    name: str
    inputs: tuple[tuple[str, str], ...] = ()
    outputs: tuple[tuple[str, str], ...] = ()


@frozen
class Source:
    """The file a model was made from: facts for reports, which change nothing that is computed.

    `operators` and `sparse` count the operators and the sparse tensors of all its subgraphs. `signatures` are all
    that it has, `metadata` its texts by name, `files` the names of files packed into it, `labels` the lines of the
    first of these that names the classes of an output.
    """

    format: str
    version: str = ""
    operators: int = 0
    sparse: int = 0
    description: str = ""
    signatures: tuple[str, ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()
    files: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


@frozen
class Rim:
    """A model as its user sees it: the ports in order, those of the source file, then the states.

    `entries` are the signatures that lead to this model, `source` is None where no file was read.
    """

    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    entries: tuple[Entry, ...] = ()
    source: Source | None = None


@frozen
class Scalar:
    """A scalar operand; its value is UNKNOWN when it is computed at run time."""

    type: Type
    value: Any


@frozen
class Signature:
    """A subgraph as its caller sees it."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    type: Type = Type.MODEL


def given(operand: Tensor | None) -> TypeGuard[Tensor]:
    """Whether an optional operand is there; undecided while its caller may still leave it out."""
    if operand is not None and operand.omittable:
        raise Undecided
    return operand is not None


def rebuilt(like: tuple[Any, ...], items: Iterable[Any]) -> Any:
    """A tuple of other items; a record where `like` is one."""
    return like._make(items) if hasattr(like, "_make") else tuple(items)


def strings(packed: np.ndarray, shape: Shape) -> np.ndarray:
    """Texts out of bytes as TFLite packs them: how many, where each starts and the last one ends, then the texts.

    Raises `ValueError` where the bytes are not that.
    """
    count = product(shape)
    head = packed[:4 * (count + 2)].view("<i4") if packed.size >= 4 * (count + 2) else np.zeros(1, np.int32)
    ends = head[1:].astype(np.int64)
    if head[0] != count or ends.size != count + 1 or (np.diff(ends) < 0).any() or ends[0] < 0 \
            or ends[-1] > packed.size:
        raise ValueError(f"{packed.size} bytes are not {count} texts")
    data, found = packed.tobytes(), np.empty(count, object)
    found[:] = [data[a:b] for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
    return found.reshape(shape)


def packed_strings(array: np.ndarray) -> np.ndarray:
    """The bytes that `strings` reads; raises `OverflowError` where these are more than it can count."""
    texts = [bytes(t) for t in array.reshape(-1)]
    starts = 4 * (len(texts) + 2) + np.cumsum([0, *map(len, texts)])
    if starts[-1] >= 1 << 31:
        raise OverflowError(f"{len(texts):,} texts take {starts[-1]:,} bytes, of which a file says places in 31 bits")
    head = np.array([len(texts), *starts], "<i4").tobytes()
    return np.frombuffer(head + b"".join(texts), np.uint8)


#: What an operand position holds; None is NNAPI's NO_VALUE.
Arg = Tensor | Scalar | Signature | None


def product(shape: Shape) -> int:
    """The product of sizes; 1 of none."""
    total = 1
    for n in shape:
        total = total * n
    return total
