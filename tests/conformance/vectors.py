"""The golden NNAPI vectors run: each case built by `ModelBuilder`, compiled, run on its examples, compared."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import numpy as np
from chance import unlikely
from golden import EX, Case, build, cases

from nnx_convert import CompiledModel, Model, NnxError, limited

Array = np.ndarray[Any, Any]
#: What a run makes of a model before it compiles it: itself, or what comes back from a file.
Route = Callable[[Model], Model]
#: Operations whose I32 results are indices, sizes or copies: AOSP's tolerance of 1 is too kind to them.
EXACT = {"ARGMAX", "ARGMIN", "TOPK_V2", "GATHER", "CAST", "SPLIT", "SLICE", "TILE", "EXPAND_DIMS", "FILL", "RANK",
         "EMBEDDING_LOOKUP", "HASHTABLE_LOOKUP", "LSH_PROJECTION", "DENSIFY", "EQUAL", "SELECT"}
#: Endless loops need not run for as long as NNAPI may wait.
PATIENCE = 1.0


def failures(family: str, route: Route = lambda model: model) -> dict[str, str]:
    """The cases of a family by name, each with what is wrong with it; "" where it passes."""
    return {c["name"]: fault(c, route) for c in cases(family)}


def fault(case: Case, route: Route) -> str:
    """What is wrong with one case; "" where nothing is. One that has to fail may be endless."""
    with limited(loop_seconds=PATIENCE) if case["expect_failure"] else nullcontext():
        return _fault(case, route)


def _fault(case: Case, route: Route) -> str:
    try:
        model = route(build(case))
        compiled = CompiledModel(model)
        found = [compiled.run([given(case, i, example) for i in case["inputs"]]) for example in case["examples"]]
    except NnxError as error:
        return "" if case["expect_failure"] else str(error)
    except Exception as error:
        # A crash counts as one wrong case, not as the end of the family.
        return f"crashed: {type(error).__name__}: {error}"
    if case["expect_failure"]:
        return "ran, and had to fail"
    wrong = (differences(case, outputs, example) for outputs, example in zip(found, case["examples"], strict=True))
    return next(filter(None, wrong), "")


def given(case: Case, index: int, example: dict[str, Any]) -> Array | None:
    """An input as a run takes it; an empty one stands for one left out."""
    value: Array = example["inputs"][index]
    return value if value.size else None


def differences(case: Case, outputs: Iterable[Array], example: dict[str, Any]) -> str:
    """How the outputs of one run differ from the golden ones; "" where they do not."""
    if case.get("statistical"):
        return misdrawn(case, next(iter(outputs)), example)
    for index, got, tolerance in zip(case["outputs"], outputs, case["tolerance"], strict=True):
        golden: Array = example["outputs"][index]
        if case["operands"][index].get("ignored"):
            continue
        if got.shape != golden.shape:
            return f"output {index} has shape {list(got.shape)}, not {list(golden.shape)}"
        atol = 0 if exact(case, index) else tolerance["atol"]
        real, want = got.astype(np.float64), golden.astype(np.float64)
        with np.errstate(invalid="ignore"):
            good = (np.abs(real - want) <= atol + tolerance["rtol"] * np.abs(want)) | (real == want)
        good |= np.isnan(real) & np.isnan(want)
        if not good.all():
            worst = tuple(int(n) for n in np.argwhere(~good)[0])
            return f"output {index} is {got[worst]} at {list(worst)}, not {golden[worst]}"
    return ""


def exact(case: Case, index: int) -> bool:
    """Whether an output is one of integers that have to be right."""
    makers = [o for o in case["operations"] if index in o["outputs"]]
    return case["operands"][index]["type"] == "TENSOR_INT32" and any(
        o["code"] in EX or o["type"] in EXACT for o in makers)


def misdrawn(case: Case, drawn: Array, example: dict[str, Any]) -> str:
    """How far the classes drawn are from their odds, row by row; "" where that is within both bounds.

    The cases' own bound is on shares; chi-square is stricter where draws are many.
    """
    logits: Array = example["inputs"][case["inputs"][0]].astype(np.float64)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    odds /= odds.sum(axis=1, keepdims=True)
    counts = np.stack([np.bincount(row, minlength=odds.shape[1]) for row in drawn])
    off = float(np.abs(counts / drawn.shape[1] - odds).max())
    if said := next(filter(None, (unlikely(*row) for row in zip(counts, odds, strict=True))), ""):
        return said
    return "" if off <= case["multinomial_tolerance"] else f"a class is drawn {off:.4f} off its odds"
