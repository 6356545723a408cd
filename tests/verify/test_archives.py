"""Archives of recorded runs: which array is which."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnx_convert import UsageError
from nnx_convert.verify.archives import output_key, runs

ONE, TWO = np.array([1.0]), np.array([2.0])


@pytest.mark.parametrize(("keys", "key"), [
    (["y"], "y"), (["out0"], "out0"), (["out0", "ref_out0"], "ref_out0"), (["ref_out0", "np_out0"], "np_out0"),
    (["tflm_out0"], "tflm_out0"), (["out_0"], "out_0"), (["wheel_out0"], "wheel_out0"), (["out1"], None),
    (["a_out0", "b_out0"], None), ([], None)])
def test_an_output_is_found_by_name_or_place(keys: list[str], key: str | None) -> None:
    assert output_key(dict.fromkeys(keys, ONE), "y", 0) == key


def test_runs_in_a_row_have_prefixes() -> None:
    held: dict[str, Any] = {"in0": ONE, "out0": ONE, "between": ONE, "s1_x": TWO, "s1_out0": TWO, "s1_between": TWO,
                            "s2_out0": ONE}
    found = list(runs(held, ["x"], ["y"]))
    assert [sorted(r.inputs) for r in found] == [["x"], ["x"], []]
    assert [float(r.outputs["y"][0]) for r in found] == [1.0, 2.0, 1.0]
    assert (found[0].tensors["between"], found[1].tensors["between"]) == (ONE, TWO)


def test_a_sequence_counts_its_runs_along_the_first_axis() -> None:
    found = list(runs({"seq_in0": np.arange(6).reshape(3, 2), "seq_out0": np.arange(3), "in0": ONE}, ["x"], ["y"]))
    assert [(r.inputs["x"].tolist(), int(r.outputs["y"])) for r in found] == [([0, 1], 0), ([2, 3], 1), ([4, 5], 2)]


def test_a_sequence_of_lists_counts_runs_along_the_first_axis_of_each_array() -> None:
    held = {"seq_in0": np.zeros((2, 3)), "seq_y[0]": np.array([1, 2]), "seq_y[1]": np.array([[3, 4], [5, 6]])}
    found = list(runs(held, ["x"], ["y"]))
    assert [[a.tolist() for a in r.outputs["y"]] for r in found] == [[1, [3, 4]], [2, [5, 6]]]


def test_the_better_of_two_sequences_of_outputs_is_taken() -> None:
    held = {"seq_in0": np.zeros((2, 3)), "seq_out0": np.zeros(2), "ref_seq_out0": np.arange(2)}
    assert [int(r.outputs["y"]) for r in runs(held, ["x"], ["y"])] == [0, 1]


@pytest.mark.parametrize("other", [{"seq_out0": np.zeros(4)}, {"seq_a": np.zeros(2)}, {"seq_a": np.zeros(())}])
def test_a_sequence_has_one_number_of_runs(other: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="not one number of runs"):
        list(runs({"seq_in0": np.zeros((3, 2)), **other}, ["x"], ["y"]))
