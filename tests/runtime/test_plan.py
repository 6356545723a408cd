"""The planner: what lives at the same time never shares bytes, and little is wasted."""
from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnx_convert.errors import RunError
from nnx_convert.runtime.bind import Program, Step
from nnx_convert.runtime.plan import ALIGN, Plan, plan
from nnx_convert.types import F32, Tensor


def nothing(*_: object) -> None:
    """A run that is never called."""


def chain(sizes: list[int], reads: list[list[int]], takes: bool = False, scratch: int = 0) -> Program:
    """A program whose step n writes slot n + 1 of sizes[n + 1] floats and reads the slots given."""
    steps = tuple(Step("OP", "", nothing, (n + 1,), tuple(r), (((scratch,), np.dtype("f4")),) * bool(scratch),
                       takes=tuple(r) if takes else ()) for n, r in enumerate(reads))
    return Program(steps, {i: Tensor(F32, (n,)) for i, n in enumerate(sizes)}, {}, (0,), (len(reads),))


def overlapping(p: Plan, program: Program) -> list[tuple[int, int]]:
    """Pairs of slots alive at one time that share bytes without one having taken over the other."""
    first = {0: -1} | {s.outs[0]: n for n, s in enumerate(program.steps)}
    last = dict.fromkeys(first, -1) | {i: n for n, s in enumerate(program.steps) for i in s.reads}
    last |= dict.fromkeys(program.outputs, len(program.steps))
    last = {i: max(last[i], first[i]) for i in first}
    found = []
    for a in first:
        for b in first:
            x, y = p.slots[a], p.slots[b]
            bytes_meet = x.offset < y.offset + y.nbytes and y.offset < x.offset + x.nbytes
            taken = program.steps[first[b]].takes if first[b] >= 0 else ()
            if a < b and bytes_meet and first[b] < last[a] + (a not in taken) and first[a] <= last[b]:
                found.append((a, b))
    return found


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Random straight-line programs."""
    count = draw(st.integers(1, 12))
    sizes = draw(st.lists(st.sampled_from([1, 3, 16, 17, 64, 100]), min_size=count + 1, max_size=count + 1))
    reads = [draw(st.lists(st.integers(0, n), min_size=1, max_size=3)) for n in range(count)]
    return chain(sizes, reads, draw(st.booleans()), draw(st.sampled_from([0, 5, 40])))


@settings(max_examples=200)
@given(programs())
def test_what_lives_together_shares_no_bytes(program: Program) -> None:
    p = plan(program)
    assert overlapping(p, program) == []
    for n, row in enumerate(p.scratch):
        for b in row:
            near = [p.slots[i] for i in (*program.steps[n].outs, *program.steps[n].reads)]
            assert all(b.offset + b.nbytes <= s.offset or s.offset + s.nbytes <= b.offset for s in near)
    assert all(b.offset % ALIGN == 0 and b.offset + b.nbytes <= p.size for b in p.slots.values())


@settings(max_examples=50)
@given(programs())
def test_without_sharing_every_array_has_its_own_bytes(program: Program) -> None:
    p = plan(program, share=False)
    spans = sorted((b.offset, b.offset + b.nbytes) for b in p.slots.values())
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_a_chain_needs_two_buffers_and_in_place_one() -> None:
    sizes, reads = [256] * 6, [[n] for n in range(5)]
    assert plan(chain(sizes, reads)).size == 2 * 1024
    assert plan(chain(sizes, reads, takes=True)).size == 1024


def test_a_value_read_later_is_not_taken_over() -> None:
    program = chain([64] * 4, [[0], [1], [2, 1]], takes=True)
    p = plan(program)
    assert p.slots[1].offset != p.slots[2].offset and p.slots[3].offset in (p.slots[1].offset, p.slots[2].offset)


def test_a_plan_of_many_steps_takes_seconds_at_most() -> None:
    count = 20_000
    reads = [[n, n * 7 % (n + 1)] if n % 10 == 0 else [n] for n in range(count)]
    begun = time.process_time()
    plan(chain([64 + n % 500 for n in range(count + 1)], reads))
    assert time.process_time() - begun < 10


def test_arrays_beyond_any_address_are_refused() -> None:
    with pytest.raises(RunError, match="addresses"):
        plan(chain([1 << 60] * 2, [[0]]))
