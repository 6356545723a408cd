"""Loops whose rounds are done natively: as those that NumPy does one by one, within the same limits."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from device_models import counted, loop
from natively import code_of
from sample_models import constant, finished, scalar

from nnx_convert import CompiledModel, Model, ModelBuilder, OperandCode as T, OperationCode as Op, OperationCodeEx as Ex
from nnx_convert.errors import LimitError, RunError
from nnx_convert.resources import limited
from nnx_convert.runtime.codegen.rounds import Rounds, copies
from nnx_convert.runtime.control import Natively

F32, I32 = T.TENSOR_FLOAT32, T.TENSOR_INT32
Array = np.ndarray[Any, Any]
Kind = tuple[T, tuple[int, ...]]
COUNT: Kind = (I32, (1,))
#: Emits the body of a loop over these values: the count's next value comes first.
Body = Callable[[ModelBuilder, Sequence[int], Callable[[Kind], int]], Sequence[int]]


def counting(kinds: Sequence[Kind], most: int, body: Body) -> Model:
    """while i < most: i, values = i + 1, body(i, values); the values are inputs and outputs of the model."""
    all_ = [COUNT, *kinds]
    one, two, b = ModelBuilder(), ModelBuilder(), ModelBuilder()
    asked, more = [one.add_operand(*k) for k in all_], one.add_operand(T.TENSOR_BOOL8, (1,))
    one.add_operation(Op.LESS, [asked[0], constant(one, I32, [most])], [more])
    given, following = [two.add_operand(*k) for k in all_], two.add_operand(*COUNT)
    two.add_operation(Op.ADD, [given[0], constant(two, I32, [1]), scalar(two, 0)], [following])
    found = body(two, given, lambda kind: two.add_operand(*kind))
    models = [b.add_operand(T.MODEL), b.add_operand(T.MODEL)]
    b.set_operand_value_from_model(models[0], finished(one, asked, [more]))
    b.set_operand_value_from_model(models[1], finished(two, given, [following, *found]))
    ins, outs = ([b.add_operand(*k) for k in kinds] for kinds in (all_, all_[:1 + len(found)]))
    b.add_operation(Op.WHILE, [*models, *ins], outs)
    return finished(b, ins, outs)


def swapping(b: ModelBuilder, v: Sequence[int], new: Callable[[Kind], int]) -> Sequence[int]:
    """x, y = y, x + y: one value is where the other was."""
    same, total = new((F32, (3,))), new((F32, (3,)))
    b.add_operation(Op.RESHAPE, [v[2], constant(b, I32, [3])], [same])
    b.add_operation(Op.ADD, [v[1], v[2], scalar(b, 0)], [total])
    return [same, total]


def staying(b: ModelBuilder, v: Sequence[int], new: Callable[[Kind], int]) -> Sequence[int]:
    """x = x * w + w of a w that stays as it is."""
    product, total = new((F32, (3,))), new((F32, (3,)))
    b.add_operation(Op.MUL, [v[1], v[2], scalar(b, 0)], [product])
    b.add_operation(Op.ADD, [product, v[2], scalar(b, 0)], [total])
    return [total]


def forgetting(b: ModelBuilder, v: Sequence[int], new: Callable[[Kind], int]) -> Sequence[int]:
    """x = [i, i, i], whatever it was."""
    real, wide = new((F32, (1,))), new((F32, (3,)))
    b.add_operation(Op.CAST, [v[0]], [real])
    b.add_operation(Op.TILE, [real, constant(b, I32, [3])], [wide])
    return [wide]


def blurring(b: ModelBuilder, v: Sequence[int], new: Callable[[Kind], int]) -> Sequence[int]:
    """An image by a filter of 3 x 3, which wants a border around it."""
    image = new((F32, (2, 6, 5, 8)))
    weights = np.random.default_rng(0).standard_normal((8, 3, 3, 8)) / 9
    numbers = [scalar(b, n) for n in (1, 1, 1, 1, 1, 1, 0)]
    b.add_operation(Op.CONV_2D, [v[1], constant(b, F32, weights), constant(b, F32, np.zeros(8)), *numbers], [image])
    return [image]


def picking(b: ModelBuilder, v: Sequence[int], new: Callable[[Kind], int]) -> Sequence[int]:
    """x + x[i], of an x that has five elements."""
    picked, total = new((F32, (1,))), new((F32, (5,)))
    b.add_operation_ex(Ex.GATHER_EX, [v[1], v[0], scalar(b, 0)], [picked])
    b.add_operation(Op.ADD, [v[1], picked, scalar(b, 0)], [total])
    return [total]


def multiplying(b: ModelBuilder, v: Sequence[int], new: Callable[[Kind], int]) -> Sequence[int]:
    """A product that is worth two threads."""
    y, size = new((F32, (64, 256))), 256
    weights = np.linalg.qr(np.random.default_rng(0).standard_normal((size, size)))[0]
    b.add_operation(Op.FULLY_CONNECTED, [v[1], constant(b, F32, weights), constant(b, F32, np.zeros(size)),
                                         scalar(b, 0)], [y])
    return [y]


ROW: Kind = (F32, (3,))
TABLE: Kind = (F32, (4, 3))
BODIES: dict[str, tuple[Body, list[Kind], bool]] = {
    "swapping": (swapping, [ROW, ROW], False), "staying": (staying, [ROW, ROW], True),
    "forgetting": (forgetting, [ROW], True), "blurring": (blurring, [(F32, (2, 6, 5, 8))], True),
    "picking": (picking, [(F32, (5,))], True), "multiplying": (multiplying, [(F32, (64, 256))], True)}


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether rounds were done natively, each time that this is asked."""
    asked, was = list[bool](), Natively.__call__

    def call(self: Natively, values: Sequence[Array | None]) -> Rounds | None:
        found = was(self, values)
        asked.append(found is not None)
        return found
    monkeypatch.setattr(Natively, "__call__", call)
    return asked


def inputs(kinds: Sequence[Kind], at: int) -> list[Array]:
    """A count to begin with, and values."""
    rng = np.random.default_rng(at)
    return [np.array([at], np.int32), *(rng.standard_normal(shape).astype(np.float32) for _, shape in kinds)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", BODIES)
def test_rounds_give_what_numpy_gives(name: str, threads: int, native: list[bool]) -> None:
    body, kinds, natively = BODIES[name]
    model = counting(kinds, 5, body)
    plain, swift = CompiledModel(model, backend="numpy"), CompiledModel(model, backend="native", threads=threads)
    for at in (5, 3, 0, 4, 5, 0):
        given = inputs(kinds, at)
        for got, want in zip(swift.run(given), plain.run(given), strict=True):
            assert np.abs(got - want).max() <= 1e-5 * max(1, np.abs(want).max())
    assert any(native) == natively


def mixing(rng: np.random.Generator, count: int) -> Body:
    """The last of some operations on values and on each other: views, sums, rows written over in turn."""
    def emit(b: ModelBuilder, v: Sequence[int], new: Callable[[Kind], int]) -> Sequence[int]:
        there, at = list(v[1:]), new((I32, (2,)))
        b.add_operation(code_of("host.CONCATENATION"), [v[0], constant(b, I32, [0]), scalar(b, 0)], [at])
        for which in rng.integers(0, 4, count + 2):
            x, y, out = *(int(n) for n in rng.choice(there, 2)), new(TABLE)
            if which == 0:
                b.add_operation(Op.RESHAPE, [x, constant(b, I32, [4, 3])], [out])
            elif which == 1:
                b.add_operation(Op.ADD, [x, y, scalar(b, 0)], [out])
            elif which == 2:
                row = constant(b, F32, rng.standard_normal((1, 3)))
                b.add_operation(code_of("host.DYNAMIC_UPDATE_SLICE"), [x, row, at], [out])
            else:
                b.add_operation(Op.NEG, [x], [out])
            there.append(out)
        return there[-count:]
    return emit


@pytest.mark.parametrize("seed", range(24))
def test_values_that_lie_in_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = int(rng.integers(1, 4))
    model = counting([TABLE] * values, 6, mixing(rng, int(rng.integers(1, values + 1))))
    plain, swift = CompiledModel(model, backend="numpy"), CompiledModel(model, backend="native", threads=1 + seed % 2)
    for at in (0, 3, 6, 2):
        given = inputs([TABLE] * values, at)
        assert all(map(np.array_equal, swift.run(given), plain.run(given)))


def test_a_loop_may_give_less_than_it_carries_and_run_branches() -> None:
    for model, given in ((counted(), [np.array([7], np.int32), np.array([1, 2], np.float32)]),
                         (loop(), [np.array([0], np.int32), np.array([1, 2], np.float32)])):
        plain, swift = (CompiledModel(model, backend=b) for b in ("numpy", "native"))
        for _ in range(3):
            assert all(map(np.array_equal, swift.run(given), plain.run(given)))


def test_what_a_round_meets_ends_the_run_and_not_the_next(native: list[bool]) -> None:
    model = CompiledModel(counting([(F32, (5,))], 9, picking), backend="native")
    fine, given = inputs([(F32, (5,))], 3), inputs([(F32, (5,))], 0)
    short = CompiledModel(counting([(F32, (5,))], 5, picking), backend="native")
    said = set[str]()
    for _ in range(3):                           # the first time Python goes from round to round
        with pytest.raises(RunError, match="5") as error:
            model.run(given)
        said.add(str(error.value))
        assert np.isfinite(short.run(fine)[1]).all()
    assert any(native) and len(said) == 1


def test_a_loop_without_end_ends_by_its_limits(native: list[bool]) -> None:
    endless = counting([ROW, ROW], 1 << 30, staying)
    for values, said in (({"rounds": 1000}, "1,000 rounds"), ({"loop_seconds": 0.05}, "longer than 0.05 seconds"),
                         ({"seconds": 0.05}, "takes longer")):
        with limited(**values):
            model = CompiledModel(endless, backend="native")
            for _ in range(2):
                with pytest.raises(LimitError, match=said):
                    model.run(inputs([ROW, ROW], 0))
    assert any(native)


def test_exactly_as_many_rounds_as_are_allowed() -> None:
    model = counting([ROW, ROW], 64, staying)
    given = inputs([ROW, ROW], 0)
    want = CompiledModel(model, backend="numpy").run(given)
    with limited(rounds=64):
        swift = CompiledModel(model, backend="native")
        for _ in range(3):
            assert np.allclose(swift.run(given)[1], want[1])


def test_a_round_is_for_the_sizes_it_was_made_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may have gone to other sizes since."""
    swift = CompiledModel(counting([ROW, ROW], 5, staying), backend="native")
    given = inputs([ROW, ROW], 0)
    want = [swift.run(given)[1] for _ in range(2)]
    other = CompiledModel(counting([ROW], 5, forgetting), backend="native")
    made, was = list[Any](), Natively.back

    def back(self: Natively[Any], rounds: Rounds) -> None:
        made.append(rounds)
        was(self, rounds)
        self._idle.appendleft(self._idle.pop())
        self._idle.append(made[0])               # that of the other model, which holds other programs
    monkeypatch.setattr(Natively, "back", back)
    for _ in range(3):
        other.run(inputs([ROW], 0))
        assert (swift.run(given)[1] == want[0]).all()


def test_many_threads_run_one_loop() -> None:
    kinds = [(F32, (64, 256))]
    model = counting(kinds, 40, multiplying)
    plain, swift = CompiledModel(model, backend="numpy"), CompiledModel(model, backend="native", threads=2)
    given = [inputs(kinds, at) for at in range(8)]
    want = [plain.run(x)[1] for x in given]
    with ThreadPoolExecutor(8) as pool:
        for got, right in zip(pool.map(lambda x: swift.run(x)[1], given * 4), want * 4, strict=True):
            assert np.abs(got - right).max() < 1e-4


I64: Kind = (T.TENSOR_INT64, (1,))
TRUTH: Kind = (T.TENSOR_BOOL8, (1,))
#: Emits what a round gives: the answer, the states, and what is collected.
Round = Callable[[ModelBuilder, Sequence[int], Callable[[Kind], int]], Sequence[int]]


def collecting(states: Sequence[Kind], parts: Sequence[Kind], round_: Round) -> Model:
    """LOOP(trip, cond, states), whose inputs these are: the states and what is collected."""
    one, b = ModelBuilder(), ModelBuilder()
    given = [one.add_operand(*k) for k in (I64, TRUTH, *states)]
    found = round_(one, given, lambda kind: one.add_operand(*kind))
    body = b.add_operand(T.MODEL)
    b.set_operand_value_from_model(body, finished(one, given, list(found)))
    ins = [b.add_operand(*k) for k in (I64, TRUTH, *states)]
    outs = [*(b.add_operand(*k) for k in states), *(b.add_operand(kind, (0, *dims)) for kind, dims in parts)]
    b.add_operation(code_of("LOOP"), [body, *ins[:2], scalar(b, len(states)), *ins[2:]], outs)
    return finished(b, ins, outs)


def summing(most: float) -> Round:
    """x = x + i; it goes on while x[0] is below a number, and x * 2 and the state before are collected."""
    def emit(b: ModelBuilder, v: Sequence[int], new: Callable[[Kind], int]) -> Sequence[int]:
        real, total, first, more, twice, before = (new(k) for k in ((F32, (1,)), ROW, (F32, (1,)), TRUTH, ROW, ROW))
        b.add_operation(code_of("host.CAST"), [v[0]], [real])
        b.add_operation(Op.ADD, [v[2], real, scalar(b, 0)], [total])
        b.add_operation(Op.SLICE, [total, constant(b, I32, [0]), constant(b, I32, [1])], [first])
        b.add_operation(Op.LESS, [first, constant(b, F32, [most])], [more])
        b.add_operation(Op.MUL, [total, constant(b, F32, [2.0]), scalar(b, 0)], [twice])
        b.add_operation(Op.NEG, [v[2]], [before])
        return [more, total, twice, before]
    return emit


def looking(b: ModelBuilder, v: Sequence[int], new: Callable[[Kind], int]) -> Sequence[int]:
    """x[i] of an x of five elements, collected."""
    narrow, picked, same, yes = new(COUNT), new((F32, (1,))), new((F32, (5,))), new(TRUTH)
    b.add_operation(code_of("host.CAST"), [v[0]], [narrow])
    b.add_operation_ex(Ex.GATHER_EX, [v[2], narrow, scalar(b, 0)], [picked])
    b.add_operation(Op.NEG, [v[2]], [same])
    b.add_operation(Op.LOGICAL_OR, [v[1], v[1]], [yes])
    return [yes, same, picked]


@pytest.mark.parametrize("most", [1e9, 40.0, -1.0])
def test_what_rounds_give_is_collected(most: float, native: list[bool]) -> None:
    model = collecting([ROW], [ROW, ROW], summing(most))
    plain, swift = CompiledModel(model, backend="numpy"), CompiledModel(model, backend="native")
    for trip in (7, 0, 1, 500, 7):
        for on in (True, False):
            given = [np.array([trip]), np.array([on]), np.array([1, 2, 3], np.float32)]
            for got, want in zip(swift.run(given), plain.run(given), strict=True):
                assert got.shape == want.shape and np.array_equal(got, want)
    assert any(native)


def test_a_counted_round_meets_what_it_cannot_do(native: list[bool]) -> None:
    model = CompiledModel(collecting([(F32, (5,))], [(F32, (1,))], looking), backend="native")
    x = np.arange(5, dtype=np.float32)
    for _ in range(3):
        assert model.run([np.array([5]), np.array([True]), x])[1].ravel().tolist() == [0, -1, 2, -3, 4]
        with pytest.raises(RunError, match="5"):
            model.run([np.array([9]), np.array([True]), x])
    assert any(native)


def test_counted_rounds_end_by_the_limits(native: list[bool]) -> None:
    endless, given = collecting([ROW], [ROW, ROW], summing(np.inf)), [np.array([True]), np.zeros(3, np.float32)]
    for values, trip, said in (({"rounds": 1000}, 5000, "1,000 rounds"), ({"seconds": 0.05}, 1 << 40, "takes longer"),
                               ({"loop_seconds": 0.05}, 1 << 40, "longer than 0.05"),
                               ({"total_bytes": 1 << 20}, 1 << 40, "what the rounds")):
        with limited(**values):
            model = CompiledModel(endless, backend="native")
            if "seconds" not in values:          # which compiling it takes, too
                model.run([np.array([3]), *given])
            with pytest.raises(LimitError, match=said):
                model.run([np.array([trip]), *given])
    assert any(native)


def test_copies_are_rows_in_one_piece() -> None:
    whole, border = np.zeros((2, 6, 5, 8), np.float32), np.zeros((2, 8, 7, 8), np.float32)[:, 1:7, 1:6]
    assert [c[2:6] for c in copies(whole, whole.copy())] == [(2 * 6 * 5 * 8 * 4, 1, 0, 0)]
    assert [c[2:6] for c in copies(border, whole)] == [(5 * 8 * 4, 6, 7 * 8 * 4, 5 * 8 * 4)] * 2
    assert not [*copies(whole, whole)] and not [*copies(None, whole)]
    with pytest.raises(ValueError, match="size"):
        list(copies(whole, whole[:, :3]))
    with pytest.raises(ValueError, match="too many"):
        list(copies(np.zeros((99, 2, 4), np.float32)[:, :, :2], np.zeros((99, 2, 2), np.float32)))
