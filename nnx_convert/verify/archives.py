"""Archives of recorded runs: inputs and outputs of one run or of several in a row, and tensors between, by name.

Inputs are `NAME`, `in0` or `in_NAME`; outputs `NAME`, `out0`, or `np_`, `ref_` or `tflm_` before that, which say what
computed them. The arrays of the second run have the prefix `s1_`, those of the third `s2_` and so on; with the prefix
`seq_` the first axis counts the runs. All other arrays are tensors by the names of the source file.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..errors import UsageError
from ..frozen import frozen
from ..types import Array

Arrays = Mapping[str, Array]
#: What stands before an output's name for what computed it: NumPy apart, reference kernels, TFLite Micro.
APART, REFERENCE, MICRO = "np_", "ref_", "tflm_"
#: How an output is called by its place, best first.
OUTPUTS = (APART + "{0}out{1}", REFERENCE + "{0}out{1}", "{0}out{1}", "{0}out_{1}", MICRO + "{0}out{1}")
INPUTS = ("{0}in{1}", "{0}in_{2}")
SEQUENCE = "seq_"


@frozen
class Recorded:
    """One run: its arrays by the name of the port, and all others of the archive by theirs, without a prefix."""

    inputs: Arrays
    outputs: Mapping[str, Array | list[Array]]
    tensors: Arrays


def input_key(arrays: Arrays, name: str, place: int, prefix: str = "") -> str | None:
    """Where an archive has an input."""
    return next((k for k in (prefix + name, *(s.format(prefix, place, name) for s in INPUTS)) if k in arrays), None)


def output_key(arrays: Arrays, name: str, place: int, prefix: str = "") -> str | None:
    """Where an archive has an output; where two things computed it, the better."""
    sure = (prefix + name, *(s.format(prefix, place) for s in OUTPUTS))
    ending = [k for k in arrays if k.endswith(f"_{prefix}out{place}")]
    return next((k for k in sure if k in arrays), ending[0] if len(ending) == 1 and not prefix else None)


def prefixes(arrays: Arrays, inputs: Sequence[str], outputs: Sequence[str]) -> list[str]:
    """What the arrays of each run begin with."""
    def there(prefix: str) -> bool:
        return any(input_key(arrays, n, i, prefix) for i, n in enumerate(inputs)) or any(
            output_key(arrays, n, i, prefix) for i, n in enumerate(outputs))
    found = [""]
    while there(f"s{len(found)}_"):
        found.append(f"s{len(found)}_")
    return found


def runs(arrays: Arrays, inputs: Sequence[str], outputs: Sequence[str]) -> Iterator[Recorded]:
    """The runs of an archive for ports of these names; raises `UsageError` where a sequence has no one length."""
    if not _run(arrays, inputs, outputs, SEQUENCE).inputs:
        for prefix in prefixes(arrays, inputs, outputs):
            yield _run(arrays, inputs, outputs, prefix)
        return
    started = tuple(computed + SEQUENCE for computed in ("", APART, REFERENCE, MICRO))
    sequence = {k: a for k, a in arrays.items() if k.startswith(started)}
    counts = {np.shape(a)[:1] for a in sequence.values()}
    if len(counts) != 1 or counts == {()}:
        raise UsageError(f"the arrays {SEQUENCE}... have not one number of runs")
    for t in range(counts.pop()[0]):
        yield _run({k: a[t] for k, a in sequence.items()}, inputs, outputs, SEQUENCE)


def _run(arrays: Arrays, inputs: Sequence[str], outputs: Sequence[str], prefix: str) -> Recorded:
    ins = {n: input_key(arrays, n, i, prefix) for i, n in enumerate(inputs)}
    outs = {n: output_key(arrays, n, i, prefix) for i, n in enumerate(outputs)}
    rest = {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}
    found: dict[str, Array | list[Array]] = {n: arrays[k] for n, k in outs.items() if k}
    found |= {n: items(rest, n) for n in outputs if n not in found and f"{n}[0]" in rest}
    return Recorded({n: arrays[k] for n, k in ins.items() if k}, found, rest)


def items(arrays: Arrays, name: str) -> list[Array]:
    """The arrays of a list: NAME[0], NAME[1] and so on."""
    count = next(i for i in range(len(arrays) + 1) if f"{name}[{i}]" not in arrays)
    return [arrays[f"{name}[{i}]"] for i in range(count)]
