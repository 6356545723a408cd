"""Whether the three agree on a model, and where they do not, the first operator that gives something else alone."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from .draw import Array
from .engines import DEVICE, FLOATS, Model, Refused, Tensors, ours, peer
from .rules import Single, explaining

#: Floats may differ by this part of the largest one.
TOLERANCE = 1e-5
#: Rounding noise is drawn so often, and what it moves may differ by so many times as much.
NOISES, SPREAD = 6, 8
#: Operators whose floats say how large what they give is.
SIZED = ("Resize", "Upsample", "Range", "RANGE")
Run = Callable[[Model], Tensors]


@dataclass(frozen=True)
class Finding:
    """What became of a model. `kind`: equal, explained, different, peer (refuses), ours (refuses), fault.

    `about`: the pair, or the rule; `operator`: the first that differs alone.
    """

    kind: str
    about: str = ""
    operator: str = ""
    detail: str = ""


def apart(found: Array, want: Array) -> str:
    """How two arrays differ; "" where they do not."""
    if (found.dtype, found.shape) != (want.dtype, want.shape):
        return f"{found.dtype}{list(found.shape)} for {want.dtype}{list(want.shape)}"
    if found.dtype.kind not in "fc":
        wrong = found != want
        if not wrong.any():
            return ""
        return _first(found, want, wrong)
    return _far(found, want, allowance(want))


def allowance(want: Array) -> float:
    """What floats may differ by."""
    finite = np.abs(want[np.isfinite(want)])
    return TOLERANCE * float(finite.max(initial=0.0))


def _far(found: Array, want: Array, allowed: float | Array) -> str:
    near = _distance(found, want) <= allowed
    same = near | (found == want) | (np.isnan(found) & np.isnan(want))
    return "" if same.all() else _first(found, want, np.logical_not(same))


def _first(found: Array, want: Array, wrong: Array) -> str:
    at = tuple(np.argwhere(wrong)[0].tolist())
    return f"{int(wrong.sum())} of {found.size}, first {found[at]} for {want[at]} at {list(at)}"


def differing(found: Tensors, want: Tensors, names: Sequence[str]) -> str:
    """How the first of some tensors differs; "" where none does. What the other has not is not compared."""
    for n in names:
        if n in want and (said := apart(found[n], want[n])):
            return f"{n}: {said}"
    return ""


def judge(model: Model, with_peer: bool = True, native: bool = True,
          said_before: Callable[[str], None] = lambda _: None) -> Finding:
    """Run a model by all and compare. `said_before` is told whose turn it is, before the process may end there."""
    found: Tensors
    theirs, refusal = None, ""
    if with_peer:
        said_before("peer")
        try:
            theirs = peer(model)
        except Refused as error:
            refusal = str(error)
    said_before("ours")
    try:
        found = ours(model, "numpy")
    except Refused as error:
        return Finding("ours" if theirs is not None or not with_peer else "peer", detail=str(error))
    if native:
        quick = ours(model, "native")
        if said := differing(quick, found, model.outputs):
            judged = located(model, "native", lambda m: ours(m, "native"), lambda m: ours(m, "numpy"), said)
            if judged.kind != "explained":
                return judged
    if theirs is None:
        return Finding("peer", detail=refusal) if with_peer else Finding("equal")
    return beside(model, found, theirs)


def beside(model: Model, found: Tensors, theirs: Tensors) -> Finding:
    """Compare what was found with what the reference runtime gives; ONNX's codes where they stay floats between."""
    def exactly(each: Model) -> Tensors:
        return ours(each, "numpy", target)

    target = FLOATS if any("Linear" in o for o in model.operators) and model.form == "onnx" else DEVICE
    if target is FLOATS:
        found = exactly(model)
    if said := differing(found, theirs, model.outputs):
        return located(model, "peer", exactly, peer, said, theirs)
    return Finding("equal")


def located(model: Model, about: str, run: Run, other: Run, said: str, theirs: Tensors | None = None) -> Finding:
    """The first operator that gives something else on the other's values; why the whole differs where none does."""
    known: dict[str, Array] = dict(model.given)
    rules = dict[str, str]()
    for part in model.parts():
        fed = part.fed({n: known[n] for n in part.inputs})
        want = {n: a for n, a in (theirs or {}).items() if n in part.outputs} or other(fed)
        known |= want
        if not any(operated := [n for n in part.outputs if n in want]):
            continue
        found = run(fed)
        for n in operated:
            wrong = apart(found[n], want[n])
            if wrong and theirs is not None and not apart(found[n], other(fed)[n]):
                rules["other kernels in the whole"] = part.operators[-1]
            elif wrong and not moved(fed, run, other, n, found[n], want[n]):
                rule = explaining(Single(fed, found[n], want[n])) if about == "peer" else None
                if rule is None:
                    return Finding("different", about, part.operators[-1], wrong)
                rules[rule.name] = part.operators[-1]
    if rules:
        return Finding("explained", ", ".join(sorted(rules)), ", ".join(rules.values()))
    return whole(model, about, run, other, said)


def whole(model: Model, about: str, run: Run, other: Run, said: str) -> Finding:
    """Each operator agrees alone: whether what differs is rounding that grew on its way."""
    own, found = dict(model.given), run(model)
    for part in model.parts():
        own |= run(part.fed({n: own[n] for n in part.inputs}))
    if not differing(found, own, model.outputs):
        return Finding("explained", "propagated")
    want = chained(model, other, None)
    spread = {n: np.zeros(want[n].shape) for n in model.outputs}
    for seed in range(NOISES):
        moving = chained(model, other, np.random.default_rng(seed))
        for n in model.outputs:
            if moving[n].shape == want[n].shape:
                spread[n] = np.fmax(spread[n], _distance(moving[n], want[n]))
    if all(found[n].shape == want[n].shape and not _far(
            found[n], want[n], SPREAD * spread[n] + allowance_of(want[n])) for n in model.outputs):
        return Finding("explained", "propagated")
    return Finding("different", about, "the whole", said)


def allowance_of(want: Array) -> float:
    """What an output may differ by; nothing where it is no float."""
    return allowance(want) if want.dtype.kind in "fc" else 0.0


def _distance(a: Array, b: Array) -> Array:
    """How far numbers are apart; NaN where that is not known."""
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        found: Array = np.abs(a.astype(wide) - b.astype(wide))
    return found


def chained(model: Model, run: Run, noise: np.random.Generator | None) -> dict[str, Array]:
    """Every tensor, operator by operator, with rounding noise on what is given and between."""
    known = {n: shaken(a, noise) for n, a in model.given.items()}
    for part in model.parts():
        found = run(noisy(part.fed({n: known[n] for n in part.inputs}), noise))
        known |= {n: shaken(a, noise) for n, a in found.items() if n not in known}
    return known


def noisy(model: Model, noise: np.random.Generator | None) -> Model:
    """One operator with rounding noise on its inputs and weights; on its inputs alone where constants are sizes."""
    if model.operators[-1] in SIZED:
        return model.fed({n: shaken(a, noise) for n, a in model.given.items()})
    return model.changed(partial(shaken, noise=noise))


def shaken(x: Array, noise: np.random.Generator | None) -> Array:
    """Floats moved by a rounding or two."""
    if noise is None or x.dtype.kind != "f" or not x.size:
        return x
    eps = np.finfo(x.dtype).eps
    return np.asarray(x * (1 + eps * noise.integers(-2, 3, x.shape)), x.dtype)


def moved(model: Model, run: Run, other: Run, name: str, found: Array, want: Array) -> bool:
    """Whether rounding noise in what an operator is given moves each element of its output about as far as it differs.

    Each of the two is compared with itself: what one of them does wrong, it does with noise as well.
    """
    if (found.shape, found.dtype) != (want.shape, want.dtype) or not any(
            a.dtype.kind == "f" for a in model.given.values()):
        return False
    spread = np.zeros(want.shape)
    for seed in range(NOISES):
        noise = np.random.default_rng(seed)
        fed = noisy(model, noise)
        for each, quiet in ((run, found), (other, want)):
            moving = each(fed)[name]
            if moving.shape != quiet.shape:
                return False
            spread = np.fmax(spread, _distance(moving, quiet))
    if want.dtype.kind == "f":
        return not _far(found, want, SPREAD * spread + allowance(want))
    return bool((spread[found != want] > 0).all())
