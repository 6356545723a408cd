"""Functions that differ only in numbers, as one: what they compute stays what it was."""
from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from nnx_convert.runtime.codegen.ir import Function, Module, number
from nnx_convert.runtime.codegen.machine import host
from nnx_convert.runtime.codegen.merging import TOLD, merged
from nnx_convert.runtime.codegen.objects import Library, compiled

#: Writes the body of a function of a number, `%x`, that has a number of its own; the name of the result.
Body = Callable[[Function, int], str]
VECTOR, NEXT = "<8 x i32>", "i64 %x"
REGISTERS = 16


def divided(f: Function, n: int) -> str:
    return f.add(f.mul(f.div("%x", n), 3), f.rem("%x", n))


def stacked(f: Function, n: int) -> str:
    """Its own number at the end of so many on the stack, and its triple and fivefold, by way of addresses."""
    room = f.let(f"alloca [{n} x i64], align 8")
    f.store("i64", "%x", room, 8 * (n - 1), 8)
    return f.add(f.load("i64", room, 8 * n - 8, 8), f.add(f.mul("%x", 3 * n), f.mul("%x", 5 * n)))


def bounded(f: Function, n: int) -> str:
    low = f.let("trunc i64 %x to i32")
    v = f.let(f"sub {VECTOR} {f.splat(VECTOR, low)}, splat (i32 {n})")
    v = f.call(VECTOR, "llvm.smax.v8i32", (VECTOR, v), (VECTOR, f"splat (i32 {-n})"))
    return f.let(f"sext i32 {f.let(f'extractelement {VECTOR} {v}, i64 5')} to i64")


def held(f: Function, n: int) -> str:
    """The numbers of `bounded`, and one that is the same in all, where LLVM is held."""
    f.fence()
    v = f.let(f"xor {VECTOR} {f.splat(VECTOR, f.let(f'trunc i64 {bounded(f, n)} to i32'))}, splat (i32 77)")
    return f.let(f"sext i32 {f.let(f'extractelement {VECTOR} {v}, i64 2')} to i64")


def crowded(f: Function, n: int) -> str:
    """A sum with more vectors of numbers than half of the registers; two of them twice, of which one is the same."""
    v = f.splat(VECTOR, f.let("trunc i64 %x to i32"))
    for k in (n, -n, 77, 77, n, *range(REGISTERS)):
        v = f.let(f"add {VECTOR} {v}, splat (i32 {k})")
    return f.let(f"sext i32 {f.let(f'extractelement {VECTOR} {v}, i64 2')} to i64")


def repeated(f: Function, n: int) -> str:
    """`crowded`, and its numbers again in another block."""
    again = f.label()
    first = crowded(f, n)
    f.go(again)
    f.start(again)
    return f.add(first, crowded(f, n))


def wide(f: Function, n: int) -> str:
    """A sum of FLOAT64 with a number twice, and one that is the same in all."""
    type = "<8 x double>"
    v = f.let(f"sitofp {VECTOR} {f.splat(VECTOR, f.let('trunc i64 %x to i32'))} to {type}")
    for k in (n, n, 77):
        v = f.let(f"fadd {type} {v}, {number(type, k)}")
    return f.let(f"fptosi double {f.let(f'extractelement {type} {v}, i64 7')} to i64")


def looped(f: Function, n: int) -> str:
    return f.loop(0, n, 1, [("i64", "%x")], lambda i, now: [f.add(now[0], f.mul(i, n))])[0]


def chosen(f: Function, n: int) -> str:
    """One of two numbers of its own, and the least of another and the argument."""
    one = f.select(f.let(f"icmp slt i64 %x, {20 * n}"), "i64", str(n), str(5 * n))
    return f.add(one, f.least("%x", 500 + n))


def moved(f: Function, n: int) -> str:
    """What is last in so many bytes, copied over others that were filled."""
    filled, copied = 64 + 8 * n, 304 + 8 * n
    room, other = f.let("alloca [4096 x i8], align 8"), f.let("alloca [4096 x i8], align 8")
    f.fill(room, 3, 4096)
    f.fill(room, 1, filled)
    f.store("i64", "%x", other, copied - 8, 8)
    f.copy(f.at(room, copied), other, copied)
    edge = f.add(f.load("i64", room, filled - 8, 8), f.load("i64", room, filled, 8))
    return f.add(f.add(f.load("i64", room, 2 * copied - 8, 8), edge), n)


def calling(f: Function, n: int) -> str:
    """Two others, of which one has another number and is another one, too."""
    one, other = inner(f.module, f"a{n}", divided, n + 1), inner(f.module, f"b{n}", looped, 2 * n)
    return f.add(f.let(f"call i64 @{one}({NEXT})"), f.let(f"call i64 @{other}(i64 {n})"))


def inner(m: Module, name: str, body: Body, n: int) -> str:
    f = Function(m, name, (("i64", "%x"),))
    f.finish(f"i64 {body(f, n)}")
    return name


def outer(m: Module, names: Sequence[str]) -> None:
    """The exported function `(x, to)`, which stores what each gives."""
    f = Function(m, "f", (("i64", "%x"), ("ptr", "%to")), exported=True)
    for n, name in enumerate(names):
        f.store("i64", f.let(f"call i64 @{name}({NEXT})"), "%to", 8 * n, 8)
    f.finish()


def results(texts: Sequence[str], x: int, count: int) -> list[int]:
    library, found = Library(compiled(texts, host()), ("f",), host()), np.zeros(count, np.int64)
    ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(library.address("f"))(x, found.ctypes.data)
    return list(map(int, found))


def module(body: Body, numbers: Sequence[int]) -> Module:
    m = Module(host())
    outer(m, [inner(m, f"g{k}", body, n) for k, n in enumerate(numbers)])
    return m


@pytest.mark.parametrize("body", [divided, stacked, bounded, held, crowded, repeated, wide, looped, chosen, moved,
                                  calling])
def test_what_is_left_computes_the_same(body: Body) -> None:
    numbers = (7, 12, 60, 3)
    m = module(body, numbers)
    left, tables = merged(m._functions, REGISTERS)
    assert len(left) == (4 if body is calling else 2) and len(tables) >= len(numbers)
    want = results([m.text()], 1000, len(numbers))
    assert len(set(want)) == len(numbers) and results(m.texts(1), 1000, len(numbers)) == want


@pytest.mark.parametrize(("pair", "count"), [("splat (i32 {}), splat (i32 1)", 2),
                                             ("splat (i32 1), splat (i32 {})", 3)])
def test_a_vector_of_numbers_is_told_where_its_type_is_before_it(pair: str, count: int) -> None:
    def both(f: Function, n: int) -> str:
        v = f.let(f"add {VECTOR} {pair.format(n)}")
        return f.let(f"sext i32 {f.let(f'extractelement {VECTOR} {v}, i64 3')} to i64")
    m = module(both, (5, 6))
    assert len(merged(m._functions, REGISTERS)[0]) == count
    assert results(m.texts(1), 0, 2) == [6, 7]


@pytest.mark.parametrize(("body", "lasting", "read"), [
    (bounded, 2, 0), (held, 0, 3), (crowded, 2, 1 + REGISTERS), (repeated, 4, 2 + 2 * REGISTERS), (wide, 0, 3)])
def test_vectors_are_read_where_they_are_needed_where_registers_are_few(body: Body, lasting: int, read: int) -> None:
    left, _ = merged(module(body, (7, 60))._functions, REGISTERS)
    loads = [line for line in left["g0"].split("\n") if "= load <8 x " in line]
    assert sum("!invariant.load" in line for line in loads) == lasting and len(loads) == lasting + read


@pytest.mark.parametrize(("sizes", "count"), [((16, 32), 3), ((63, 64), 3), ((64, 65), 2)])
def test_few_bytes_are_filled_without_a_call(sizes: tuple[int, int], count: int) -> None:
    def few(f: Function, n: int) -> str:
        room = f.let("alloca [128 x i8], align 8")
        f.fill(room, 7, 128)
        f.fill(room, 0, n)
        return f.load("i64", room, 16, 8)
    m = module(few, sizes)
    assert len(merged(m._functions, REGISTERS)[0]) == count
    assert results(m.texts(1), 0, 2) == [0 if n > 16 else 0x0707070707070707 for n in sizes]


def test_numbers_are_added_and_multiplied_where_they_are_known() -> None:
    f = Function(Module(host()), "g", (("i64", "%x"),))
    assert (f.add("3", 4), f.mul(3, "-4"), f.add(f.mul("5", 2), "%x")) == ("7", "-12", "%v1")


def test_what_differs_in_nothing_has_no_table() -> None:
    left, tables = merged(module(divided, (5, 5))._functions, REGISTERS)
    assert len(left) == 2 and not tables


def test_what_is_known_otherwise_than_by_calls_stays() -> None:
    m = module(divided, (5, 6))
    f = Function(m, "h", (("ptr", "%to"),), exported=True)
    f.do("store ptr @g0, ptr %to, align 8")
    f.finish()
    left, tables = merged(m._functions, REGISTERS)
    assert left.keys() == {"g0", "g1", "f", "h"} and not tables and left["g0"] == m._functions["g0"]


def circling(m: Module, n: int, callee: str) -> None:
    """`g` of a number gives what `h` of that number does, from x on in steps of its own down to nearly none."""
    f = Function(m, f"g{n}", (("i64", "%x"),))
    room = f.let("alloca i64, align 8")
    f.store("i64", f.let(f"call i64 @h{n}({NEXT})"), room, 0, 8)

    def again() -> None:
        f.store("i64", f.let(f"call i64 @{callee}(i64 {f.add('%x', -7 - n)})"), room, 0, 8)
    f.when(f.let(f"icmp sgt i64 %x, {7 + n}"), again)
    f.finish(f"i64 {f.load('i64', room, 0, 8)}")


@pytest.mark.parametrize("around", [("g0", "g0"), ("g1", "g0")])
def test_what_calls_itself_is_left_alone_or_in_a_circle(around: tuple[str, str]) -> None:
    m = Module(host())
    for n, callee in enumerate(around):
        inner(m, f"h{n}", divided, 5 + n)
        circling(m, n, callee)
    outer(m, ["g0", "g1"])
    left, _ = merged(m._functions, REGISTERS)
    heads = {name: text.partition("{")[0] for name, text in left.items()}
    assert len(left) == 4 and not any(TOLD in heads[name] for name in around)
    want = results([m.text()], 1000, 2)
    assert results(m.texts(1), 1000, 2) == want


@settings(max_examples=25)
@given(st.lists(st.one_of(st.integers(2, 100), st.integers(2, 2 ** 62)), min_size=2, max_size=6, unique=True),
       st.integers(0, 2 ** 63 - 1))
def test_divisors_that_are_told_divide_exactly(divisors: list[int], x: int) -> None:
    m = Module(host())
    names = [inner(m, f"g{k}", lambda f, n: f.div("%x", n), n) for k, n in enumerate(divisors)]
    names += [inner(m, f"h{k}", lambda f, n: f.rem("%x", n), n) for k, n in enumerate(divisors)]
    outer(m, names)
    assert len(merged(m._functions, REGISTERS)[0]) == 3
    assert results(m.texts(1), x, len(names)) == [x // d for d in divisors] + [x % d for d in divisors]
