"""Reading images between their cells, regions, boxes, draws, by hand; ONNX's answers are the importers'."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_op import run_op, tensor

from nnx_convert.errors import RunError
from nnx_convert.ops import sampling as s
from nnx_convert.runtime.bind import once
from nnx_convert.schema import OpDef, OpError
from nnx_convert.types import B8, F32, I32, I64, STR, UNKNOWN, Tensor

ROW = tensor([[10, 20, 40]], F32)


def run(op: OpDef, args: dict[str, Any], outs: int = 1) -> list[Any]:
    """The outputs of an operation, whose sizes follow from values."""
    found = once(op, args, tuple(Tensor(t.type, (UNKNOWN,) * t.rank) for t in op.infer(args, outs)))
    assert found is not None
    return found


def resampled(x: Tensor = ROW, **more: Any) -> dict[str, Any]:
    """The arguments of INTERPOLATE along the second axis."""
    plain = {"x": x, "roi": None, "scales": None, "sizes": None, "axes": tensor([1], I32), "mode": s.LINEAR, "grid": 0,
             "rounding": 0, "policy": 0, "a": -0.75, "inside": False, "extrapolation": -1.0, "smooth": False}
    return plain | more


def grid(name: str) -> int:
    return s.GRIDS.index(name)


SIX, HALF = tensor([6], I64), tensor([0.5], F32)
#: The arguments that count, and the row that comes out.
CASES: list[tuple[dict[str, Any], list[float]]] = [
    ({"sizes": SIX}, [10, 12.5, 17.5, 25, 35, 40]), ({"scales": tensor([2], F32)}, [10, 12.5, 17.5, 25, 35, 40]),
    ({"sizes": tensor([5], I64), "grid": grid("align_corners")}, [10, 15, 20, 30, 40]),
    ({"sizes": SIX, "grid": grid("asymmetric")}, [10, 15, 20, 30, 40, 40]),
    ({"sizes": tensor([1], I64)}, [20]), ({"sizes": tensor([1], I64), "grid": grid("pytorch_half_pixel")}, [10]),
    ({"scales": HALF, "grid": grid("half_pixel_symmetric")}, [20]), ({"scales": HALF}, [15]),
    ({"sizes": SIX, "mode": s.NEAREST}, [10, 10, 20, 20, 40, 40]),
    ({"sizes": SIX, "mode": s.NEAREST, "rounding": 3}, [10, 20, 20, 40, 40, 40]),
    ({"x": tensor([[0, 1, 2, 3, 4]], F32), "scales": tensor([1.5], F32), "grid": grid("half_pixel_symmetric"),
      "mode": s.NEAREST, "rounding": s.ROUNDINGS.index("ceil")}, [0, 1, 2, 2, 3, 4, 4]),
    ({"sizes": tensor([3], I64), "grid": grid("tf_crop_and_resize"), "roi": tensor([0.5, 1.5], F32)}, [20, 40, -1]),
    ({"sizes": tensor([1], I64), "smooth": True, "scales": tensor([1 / 3], F32)}, [70 / 3]),
    ({"sizes": tensor([0], I64)}, [])]


@pytest.mark.parametrize(("args", "want"), CASES, ids=range(len(CASES)))
def test_rows_on_another_grid(args: dict[str, Any], want: list[float]) -> None:
    (found,) = run(s.INTERPOLATE, resampled(**args))
    np.testing.assert_allclose(found, np.reshape(want, (1, -1)), rtol=1e-5)


def test_whole_numbers_are_rounded_and_texts_are_picked() -> None:
    (found,) = run(s.INTERPOLATE, resampled(tensor([[1, 2, 4]], I64), sizes=SIX))
    assert found.tolist() == [[1, 1, 2, 2, 4, 4]]
    text = tensor(np.array([[b"a", b"b"]], object), STR)
    (found,) = run(s.INTERPOLATE, resampled(text, sizes=tensor([4], I64), mode=s.NEAREST))
    assert found.tolist() == [[b"a", b"a", b"b", b"b"]]


@pytest.mark.parametrize(("args", "said"), [
    ({"sizes": tensor([-1], I64)}, "would have the shape"), ({"scales": tensor([0], F32)}, "scales are"),
    ({"scales": tensor([np.nan], F32)}, "NaN"), ({"sizes": tensor([1 << 40], I64)}, "elements are asked for"),
    ({"x": tensor(np.zeros((1, 0)), F32), "sizes": SIX}, "become")], ids=str)
def test_sizes_that_are_none_fail_the_run(args: dict[str, Any], said: str) -> None:
    with pytest.raises((RunError, OpError), match=said):
        run(s.INTERPOLATE, resampled(**args))


BOXES = tensor([[[0, 0, 2, 2], [2, 2, 0, 0.2], [5, 5, 6, 6], [5, 5, 5, 9]]], F32)
SCORES = tensor([[[0.5, 0.9, 0.9, 0.95], [0.1, 0.2, 0.3, 0.4]]], F32)


@pytest.mark.parametrize(("most", "least", "want"), [
    (9, None, [[0, 0, 3], [0, 0, 1], [0, 0, 2], [0, 1, 3], [0, 1, 2], [0, 1, 1]]), (1, None, [[0, 0, 3], [0, 1, 3]]),
    (9, 0.35, [[0, 0, 3], [0, 0, 1], [0, 0, 2], [0, 1, 3]]), (0, None, []), (-4, None, [])])
def test_boxes_are_kept_class_by_class(most: int, least: float | None, want: list[list[int]]) -> None:
    args = {"boxes": BOXES, "scores": SCORES, "most": tensor([most], I64), "iou_threshold": tensor([0.5], F32),
            "score_threshold": None if least is None else tensor([least], F32), "centred": False}
    assert run(s.SELECT_BOXES, args)[0].tolist() == want


def test_more_boxes_than_are_compared_at_a_time() -> None:
    r = np.random.default_rng(0)
    corner = r.uniform(0, 4, (1, 300, 2))
    boxes, scores = np.concatenate([corner, corner + 1], 2).astype(np.float32), r.random((1, 1, 300)).astype(np.float32)
    args = {"boxes": tensor(boxes, F32), "scores": tensor(scores, F32), "most": tensor([300], I64),
            "iou_threshold": tensor([0.1], F32), "score_threshold": None, "centred": False}
    kept = list[int]()
    for i in np.argsort(-scores[0, 0]).tolist():
        sides = [np.minimum(boxes[0, k, 2:], boxes[0, i, 2:]) - np.maximum(boxes[0, k, :2], boxes[0, i, :2])
                 for k in kept]
        shared = [float(np.prod(np.maximum(v, 0))) for v in sides]
        kept += [i] * all(v / (2 - v) <= 0.1 for v in shared)
    assert run(s.SELECT_BOXES, args)[0][:, 2].tolist() == kept


def drawn(seeded: bool, training: bool = True, ratio: float = 0.25) -> list[Any]:
    """The outputs of DROPOUT on ones."""
    args = {"x": tensor(np.ones(4000), F32), "ratio": tensor([ratio], F32), "training": tensor([training], B8),
            "seed": 7, "seeded": seeded}
    return run_op(s.DROPOUT, args, Tensor(F32, None), Tensor(B8, None))


def test_draws() -> None:
    y, mask = drawn(True)
    assert np.array_equal(y, np.where(mask, np.float32(1 / 0.75), 0)) and abs(mask.mean() - 0.75) < 0.05
    assert np.array_equal(mask, drawn(True)[1]) and not np.array_equal(drawn(False)[1], drawn(False)[1])
    assert drawn(True, False)[1].all() and drawn(True, ratio=0)[1].all() and not drawn(True, ratio=1)[0].any()
