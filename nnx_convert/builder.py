"""`ModelBuilder`: NNAPI's model calls in Python, with its states and its errors."""
from __future__ import annotations

import heapq
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from . import ops  # noqa: F401  (fills the table)
from .codes import OperandCode, OperationCode, OperationCodeEx, ResultCode
from .errors import ModelError
from .frozen import frozen
from .model import Lifetime, Model, Operand, Operation, default_rim
from .ops.host import op_of
from .resources import DEEPEST
from .schema import EX_CODES, Checked, OpDef, OpError
from .types import HOST_TYPES, MOST_AXES, NARROW_FLOATS, NARROW_INTS, QPC, ZERO_POINTS, ChannelQuant, Quant, Rim

_CODES = frozenset(int(c) for c in OperationCode)
#: No operand and no constant is larger than this many elements.
LARGEST = 1 << 31


@dataclass
class _Listed:
    """An operation, and the operands as they were when the table accepted it."""

    operation: Operation
    seen: tuple[Operand, ...]
    checked: Checked
    origin: str


@dataclass
class ModelBuilder:
    """Build a model call by call, as `ANeuralNetworksModel_*` does; `finish` gives the frozen `Model`.

    Every refusal is a `ModelError` with the NNAPI result, the rule's text and the indices concerned. Codes are
    enum members or plain integers, values NumPy arrays or Python numbers.
    """

    _operands: list[Operand] = field(default_factory=list[Operand])
    _listed: list[_Listed] = field(default_factory=list[_Listed])
    _writer: dict[int, int] = field(default_factory=dict[int, int])
    _inputs: tuple[int, ...] = ()
    _outputs: tuple[int, ...] = ()
    _relaxed: bool = False
    _finished: bool = False

    def add_operand(self, code: int, dims: Sequence[int] = (), scale: float = 0.0, zero_point: int = 0) -> int:
        """Add an operand and return its index. A dimension of 0 is not known yet; no dimensions: the rank is not."""
        self._open()
        index = len(self._operands)
        code = _code(code, "an operand's type", index)
        if code not in OperandCode.__members__.values():
            raise ModelError(f"there is no operand type {code}", operand=index)
        type_, need = OperandCode(code), _Need(index)
        (scale,), (zero_point,) = _reals([scale], need, "scale"), _integers([zero_point], need, "zero point")
        sizes = _integers(dims, need, "dimensions")
        need(not (type_.group != "tensor" and sizes), f"a {type_.name} has no dimensions")
        need(len(sizes) <= MOST_AXES, f"it has {len(sizes)} dimensions, {MOST_AXES} at most")
        need(all(0 <= n < LARGEST for n in sizes), "a dimension is negative or too large")
        if type_ in ZERO_POINTS:
            need(0 < scale < math.inf, f"{type_.name} needs a positive scale")
            need(zero_point in ZERO_POINTS[type_], f"zero point {zero_point} is outside {type_.name}")
        else:
            plain = scale == 0 and zero_point == 0
            need(plain or type_ in (OperandCode.TENSOR_INT32, *HOST_TYPES), f"{type_.name} is not quantised")
            need(math.isfinite(scale) and abs(zero_point) < LARGEST, "its scale or its zero point is out of range")
        quant = Quant(scale, zero_point) if scale or zero_point else None
        self._operands.append(Operand(type_, sizes, quant))
        return index

    def set_operand_symm_per_channel_quant_params(self, index: int, channel_dim: int, scales: Sequence[float]) -> None:
        """Give a TENSOR_QUANT8_SYMM_PER_CHANNEL operand a scale per index of dimension `channel_dim`."""
        self._open()
        o, need = self._operand(index), _Need(index)
        need(o.type == QPC, f"{o.type.name} has no scales per channel")
        (channel_dim,), exact = _integers([channel_dim], need, "channel dimension"), _reals(scales, need, "scales")
        need(0 <= channel_dim < len(o.dims) and len(exact) == o.dims[channel_dim],
             "scales and dimension differ in length")
        need(all(0 < s < math.inf for s in exact), "a scale is not positive")
        self._operands[index] = replace(o, quant=ChannelQuant(exact, channel_dim))

    def set_operand_value(self, index: int, value: Any) -> None:
        """Make an operand constant: an array or a number of its type and size; None leaves it out (NO_VALUE)."""
        self._open()
        o, need = self._operand(index), _Need(index)
        self._unbound(index)
        need(o.type != OperandCode.MODEL, "it holds a model, not a value", "call set_operand_value_from_model")
        if value is None:
            self._operands[index] = replace(o, lifetime=Lifetime.NO_VALUE, value=None)
            return
        scalar = o.type.group != "tensor"
        need(o.type != OperandCode.TENSOR_LIST, "a TENSOR_LIST is no constant")
        need(scalar or (bool(o.dims) and 0 not in o.dims), "it is not fully specified, so it cannot be constant")
        array = _array(value, o.type, need)
        need(array.dtype == o.type.dtype and array.size == math.prod(o.dims),
             f"it is {o.type.name}{list(o.dims)}, its value {array.dtype}{list(array.shape)}")
        array = array.reshape(o.dims).view()
        array.flags.writeable = False
        self._operands[index] = replace(o, lifetime=Lifetime.CONSTANT, value=array)

    def set_operand_value_from_model(self, index: int, model: Model) -> None:
        """Make a MODEL operand the subgraph of an IF or a WHILE."""
        self._open()
        o, need = self._operand(index), _Need(index)
        need(o.type == OperandCode.MODEL, f"{o.type.name} cannot hold a model")
        need(isinstance(model, Model), "it takes a finished model", "call finish on its builder")
        need(model.depth < DEEPEST, f"subgraphs are nested more than {DEEPEST} deep")
        self._unbound(index)
        self._operands[index] = replace(o, lifetime=Lifetime.SUBGRAPH, value=model)

    def add_operation(self, code: int, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Add an NNAPI operation, DENSIFY or a host operation, tested as far as its operands are known by now."""
        code = _code(code)
        if code in EX_CODES:
            raise ModelError(f"{OperationCodeEx(code).name} is an NNAPI-EX operation: use add_operation_ex")
        op = op_of(code)
        if op is None:
            raise ModelError(f"there is no operation {code}")
        self.add(op, inputs, outputs)

    def add_operation_ex(self, code: int, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Add an NNAPI-EX operation."""
        code = _code(code)
        if code in _CODES:
            raise ModelError(f"{OperationCode(code).name} is an NNAPI operation: use add_operation")
        op = op_of(code) if code in EX_CODES else None
        if op is None:
            raise ModelError(f"there is no NNAPI-EX operation {code}")
        self.add(op, inputs, outputs)

    def add(self, op: OpDef, inputs: Sequence[int], outputs: Sequence[int], *, checked: Checked | None = None,
            origin: str = "") -> None:
        """Add an operation by its row; `checked` is a verdict the caller has already, on these very operands."""
        self._open()
        number = len(self._listed)
        need = _Need(None, number, op.name)
        inputs, outputs = _integers(inputs, need, "inputs"), _integers(outputs, need, "outputs")
        for i in (*inputs, *outputs):
            self._operand(i, op.name, number)
        for n, i in enumerate(outputs):
            need = _Need(i, number, op.name)
            need(i not in outputs[:n], f"operand {i} is written twice")
            need(i not in self._writer, f"operand {i} is written by operation {self._writer.get(i)} already")
            need(self._operands[i].lifetime is Lifetime.TEMPORARY and i not in self._inputs,
                 f"operand {i} has a value, it cannot be written")
        new = Operation(op, inputs, outputs)
        found = checked or self._check(new, number)
        self._listed.append(_Listed(new, self._seen(new), found, origin))
        self._writer.update(dict.fromkeys(outputs, number))

    def identify_inputs_and_outputs(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Name the model's inputs and outputs, in order."""
        self._open()
        _Need()(not self._outputs, "the inputs and outputs are named already")
        inputs, outputs = _integers(inputs, _Need(), "inputs"), _integers(outputs, _Need(), "outputs")
        for i in (*inputs, *outputs):
            _Need(i)(self._operand(i).lifetime is Lifetime.TEMPORARY, f"operand {i} has a value")
        for i in inputs:
            _Need(i)(i not in self._writer, f"operand {i} is an input and written by operation {self._writer.get(i)}")
        _Need()(len({*inputs, *outputs}) == len(inputs) + len(outputs), "an operand is listed twice")
        self._inputs, self._outputs = inputs, outputs

    def relax_computation_float32_to_float16(self, allow: bool) -> None:
        """Let FLOAT32 be computed with the range and precision of FLOAT16."""
        self._open()
        try:
            self._relaxed = bool(allow)
        except ValueError:                       # an array has no truth value
            raise ModelError("allow is true or false") from None

    def finish(self, rim: Rim | None = None, notes: tuple[str, ...] = ()) -> Model:
        """Sort and test the whole; the builder takes no call after this one.

        `rim`: how a user sees inputs and outputs, where that is not as the operands are.
        """
        self._open()
        self._finished = True                    # also when a test below fails: NNAPI calls the model invalid then
        _Need()(bool(self._outputs), "the model has no outputs", hint="call identify_inputs_and_outputs")
        order = self._run_order()
        self._all_used()
        ends = dict.fromkeys(self._inputs, Lifetime.INPUT) | dict.fromkeys(self._outputs, Lifetime.OUTPUT)
        checked = tuple(self._rechecked(n) for n in order)
        operands = tuple(replace(o, lifetime=ends[i]) if i in ends else o for i, o in enumerate(self._operands))
        return Model(operands, tuple(self._listed[n].operation for n in order), self._inputs, self._outputs,
                     self._relaxed, checked, rim or default_rim(operands, self._inputs, self._outputs),
                     tuple(self._listed[n].origin for n in order), notes)

    def _run_order(self) -> list[int]:
        """The operations, each after what it reads; the order given where that works."""
        missing: list[set[int]] = []
        readers: dict[int, list[int]] = {}
        for n, entry in enumerate(self._listed):
            waits = {i for i in entry.operation.inputs if i in self._writer}
            missing.append(waits)
            for i in waits:
                readers.setdefault(i, []).append(n)
            for i in entry.operation.inputs:
                free = i in self._inputs or self._operands[i].lifetime is not Lifetime.TEMPORARY or i in self._writer
                _Need(i, n, entry.operation.op.name)(free, f"operand {i} is read and never written")
        order: list[int] = []
        ready = [n for n, waits in enumerate(missing) if not waits]
        while ready:
            n = heapq.heappop(ready)
            order.append(n)
            for i in self._listed[n].operation.outputs:
                for r in readers.get(i, ()):
                    missing[r].discard(i)
                    if not missing[r]:
                        heapq.heappush(ready, r)
        _Need()(len(order) == len(self._listed), "operations wait for each other's outputs")
        return order

    def _all_used(self) -> None:
        """Every operand is read or written, every output is written."""
        for i in self._outputs:
            _Need(i)(i in self._writer, f"operand {i} is an output and never written")
        used = {*self._inputs, *self._writer, *(i for e in self._listed for i in e.operation.inputs)}
        for i, o in enumerate(self._operands):
            _Need(i)(i in used, f"operand {i} is neither read nor written")
            _Need(i)(o.type != QPC or o.quant, f"{o.type.name} has no scales",
                     "call set_operand_symm_per_channel_quant_params")

    def _seen(self, o: Operation) -> tuple[Operand, ...]:
        return tuple(self._operands[i] for i in (*o.inputs, *o.outputs))

    def _rechecked(self, number: int) -> Checked:
        """The verdict on an operation, made again where one of its operands has changed since."""
        entry = self._listed[number]
        now = self._seen(entry.operation)
        same = all(a is b for a, b in zip(entry.seen, now, strict=True))
        return entry.checked if same else self._check(entry.operation, number)

    def _check(self, o: Operation, number: int) -> Checked:
        try:
            return o.op.check([self._operands[i].arg() for i in o.inputs],
                              [self._operands[i].tensor() for i in o.outputs])
        except OpError as error:
            listed = dict(enumerate((*o.inputs, *o.outputs)))
            raise ModelError(error.text, f"operation {number} {o.op.name}", error.hint, operation=number,
                             operand=None if error.operand is None else listed.get(error.operand)) from error

    def _operand(self, index: int, op: str = "", number: int | None = None) -> Operand:
        whole = isinstance(index, int | np.integer)
        there = whole and 0 <= index < len(self._operands)
        need = _Need(index if whole else None, number, op)
        need(there, f"there is no operand {_short(index)}", "call add_operand first")
        return self._operands[index]

    def _unbound(self, index: int) -> None:
        """No operation writes the operand, and no caller gives it."""
        _Need(index)(index not in self._writer, "an operation writes it")
        _Need(index)(index not in (*self._inputs, *self._outputs), "it is an input or output of the model")

    def _open(self) -> None:
        if self._finished:
            raise ModelError("the model is finished, it cannot be changed", result=ResultCode.BAD_STATE)


@frozen
class _Need:
    """Raises `ModelError` about one operand (and operation) where a condition does not hold."""

    operand: int | None = None
    operation: int | None = None
    op: str = ""

    def __call__(self, condition: Any, text: str, hint: str = "") -> None:
        if not condition:
            where = f"operation {self.operation} {self.op}" if self.operation is not None else \
                f"operand {self.operand}" if self.operand is not None and "operand" not in text else ""
            raise ModelError(text, where, hint, operation=self.operation, operand=self.operand)


def _short(value: Any) -> str:
    """A value in a line: one that is no number or text by its type."""
    return f"{value!s:.40}" if isinstance(value, int | float | str | np.number) else f"a {type(value).__name__}"


def _code(code: int, what: str = "an operation's code", operand: int | None = None) -> int:
    try:
        return operator.index(code)
    except TypeError:
        raise ModelError(f"{what} is a whole number, not {_short(code)}", operand=operand) from None


def _integers(values: Sequence[int], need: _Need, what: str) -> tuple[int, ...]:
    """Whole numbers as Python's, whatever whole numbers they are."""
    try:
        return tuple(map(operator.index, values))
    except (TypeError, ValueError, ArithmeticError):
        need(False, f"its {what} are not whole numbers")
        raise


def _reals(values: Sequence[float], need: _Need, what: str) -> tuple[float, ...]:
    """Numbers as Python's floats, each within a float's range."""
    try:
        return tuple(map(float, values))
    except (TypeError, ValueError, ArithmeticError, LookupError):
        need(False, f"its {what} are not numbers")
        raise


def _array(value: Any, type_: OperandCode, need: _Need) -> np.ndarray[Any, Any]:
    """A value as an array of the operand's type: NumPy arrays as they are, numbers where nothing is lost."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, ArithmeticError, LookupError, RuntimeError, MemoryError):
        need(False, "its value is no array")
        raise
    if array.dtype == np.uint8 and type_.dtype == np.bool_:          # BOOL8 in C is a byte
        return array.astype(np.bool_)
    if isinstance(value, np.ndarray) or array.dtype == type_.dtype:
        return array
    if type_ in (*NARROW_FLOATS, *NARROW_INTS):
        return _narrow(array, type_, need)
    fits = {"f": "fiu", "i": "iu", "u": "iu", "b": "b", "c": "fiuc", "O": "S"}[type_.dtype.kind]
    need(array.dtype.kind in fits, f"it is {type_.name}, its value {array.dtype}")
    if type_.dtype.kind in "iu" and array.size:
        info = np.iinfo(type_.dtype)
        need(array.min() >= info.min and array.max() <= info.max, f"its value does not fit {type_.name}")
    with np.errstate(over="ignore"):
        found = array.astype(type_.dtype)
    need(type_.dtype.kind not in "fc" or bool(np.all(np.isfinite(found) | ~np.isfinite(array))),
         f"its value does not fit {type_.name}")
    return found


def _narrow(array: np.ndarray[Any, Any], type_: OperandCode, need: _Need) -> np.ndarray[Any, Any]:
    """Python's numbers as a narrow type: integers as they are, floats rounded."""
    need(array.dtype.kind in ("iu" if type_ in NARROW_INTS else "fiu"), f"it is {type_.name}, its value {array.dtype}")
    found = array.astype(type_.dtype)
    need(type_ in NARROW_FLOATS or np.array_equal(found.astype(array.dtype), array),
         f"its value does not fit {type_.name}")
    return found
