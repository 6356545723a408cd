"""What is known of sizes while a file is read is what the operators say: numbers, and open sizes where they do."""
from __future__ import annotations

from typing import Any

import pytest

from nnx_convert.frontends.onnx.symbolic import evaluated, objects
from nnx_convert.symbols import symbol

N = symbol("N")
LEAST, MOST = -1 << 63, (1 << 63) - 1
#: Operator, inputs, attributes, what it gives; None where that cannot be told.
CASES: list[tuple[str, list[Any], dict[str, Any], list[Any] | None]] = [
    ("Div", [[4, -7, 7, -7], [-7, 2, -2, -2]], {}, [0, -3, -3, 3]), ("Div", [[N * 6], [4]], {}, [N * 6 // 4]),
    ("Div", [[1 - N], [2]], {}, None), ("Div", [[4], [0]], {}, None),
    ("Mod", [[7, -7, 7, -7], [3, 3, -3, -3]], {}, [1, 2, -2, -1]),
    ("Mod", [[7, -7, 7, -7], [3, 3, -3, -3]], {"fmod": 1}, [1, -1, 1, -1]),
    ("Slice", [[1, 2, 3], [0], [MOST], [0], [1]], {}, [1, 2, 3]), ("Slice", [[1, 2, 3], [0], [LEAST], [0]], {}, []),
    ("Slice", [[1, 2, 3], [-1], [LEAST], [0], [-1]], {}, [3, 2, 1]),
    ("Slice", [[1, 2, 3], [-1], [MOST], [0], [-1]], {}, []),
    ("ReduceSum", [[2, N]], {"keepdims": 1}, [N + 2]), ("ReduceProd", [[2, 3]], {"noop_with_empty_axes": 1}, [2, 3])]


@pytest.mark.parametrize("op, inputs, attributes, want", CASES, ids=[f"{c[0]} {i}" for i, c in enumerate(CASES)])
def test_sizes_are_computed_as_the_operators_say(op: str, inputs: list[Any], attributes: dict[str, Any],
                                                 want: list[Any] | None) -> None:
    found = evaluated(op, [objects(values) for values in inputs], attributes)
    assert (found and found[0].tolist()) == want
