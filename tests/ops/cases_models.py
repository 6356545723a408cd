"""Cases of recurrent cells, detection, regions, control flow, draws, hashes and sparse constants."""
from __future__ import annotations

from typing import Any

import numpy as np
from row_case import FLOATS, Case, X, c

from nnx_convert import Model, ModelBuilder, OperandCode, OperationCode
from nnx_convert.types import B8, F32, I32, Q8, Q8S, Q16A, Q16S, QS, Quant, Type

N, T, IN, U, OUT, A = 2, 3, 3, 4, 5, 2                    # batch, time, inputs, units, output, auxiliary inputs
SMALL = (-0.5, 0.5)


def weights(prefix: str, units: int = U, out: int = OUT, own: bool = True, peephole: bool = True,
            projected: bool = True) -> dict[str, Any]:
    """One LSTM cell: with an input gate of its own, peepholes, a projection; None in the place of what is not there."""
    gates = (("i", own), ("f", True), ("c", True), ("o", True))
    found = {f"w{g}": X((units, IN), span=SMALL) if there else None for g, there in gates}
    found |= {f"r{g}": X((units, out), span=SMALL) if there else None for g, there in gates}
    found |= {f"p{g}": X((units,), span=SMALL) if peephole and there else None for g, there in gates if g != "c"}
    found |= {f"b{g}": X((units,), span=SMALL) if there else None for g, there in gates}
    found |= {f"{w}p": X(s, span=SMALL) if projected else None for w, s in (("w", (out, units)), ("b", (out,)))}
    return {f"{prefix}_{name}": value for name, value in found.items()}


def norms(prefix: str, there: bool, own: bool = True) -> dict[str, Any]:
    """Layer normalisation of each gate."""
    return {f"{prefix}_{g}": X((U,), span=(0.5, 2)) if there and (own or g != "i") else None for g in "ifco"}


CLIPS = {"act": 4, "cell_clip": 0.0, "proj_clip": 0.0}
CLIPPED = {"act": 6, "cell_clip": 0.5, "proj_clip": 0.25}
RNN = {"w": (U, IN), "r": X((U, U), span=SMALL), "b": X((U,), span=SMALL), "h": (N, U), "act": 1}


def lstms() -> list[Case]:
    """LSTM: all its parts, and without them."""
    step, plain = {"x": (N, IN), "h": (N, OUT), "c": (N, U)}, {"peephole": False, "projected": False}
    return [
        c("LSTM", x=step["x"], **weights("cell"), h=step["h"], c=step["c"], **CLIPPED, **norms("norm", True)),
        c("LSTM", x=step["x"], **weights("cell"), h=step["h"], c=step["c"], **CLIPS),
        c("LSTM", x=step["x"], **weights("cell", out=U, own=False, **plain), h=(N, U), c=(N, U), **CLIPS)]


def sequences() -> list[Case]:
    """LSTMs and RNNs over time, in both layouts."""
    found = []
    for major in (False, True):
        x, aux = ((T, N, IN), (T, N, A)) if major else ((N, T, IN), (N, T, A))
        found += [
            c("UNIDIRECTIONAL_SEQUENCE_LSTM", x=x, **weights("cell"), h=(N, OUT), c=(N, U), **CLIPS, time_major=major,
              **norms("norm", major)),
            c("BIDIRECTIONAL_SEQUENCE_LSTM", x=x, **weights("fw"), **weights("bw"), fw_h=(N, OUT), fw_c=(N, U),
              bw_h=(N, OUT), bw_c=(N, U), aux=aux, **both_aux(), **CLIPS, merge=major, time_major=major,
              **norms("fw_norm", major), **norms("bw_norm", major)),
            c("UNIDIRECTIONAL_SEQUENCE_RNN", x=x, **RNN, time_major=int(major)),
            c("BIDIRECTIONAL_SEQUENCE_RNN", x=x, **{f"{d}_{n}": RNN[n] for d in ("fw", "bw") for n in "wrbh"}, aux=aux,
              fw_aw=X((U, A), span=SMALL), bw_aw=X((U, A), span=SMALL), act=1, time_major=major, merge=major),
            c("BIDIRECTIONAL_SEQUENCE_RNN", x=x, **{f"{d}_{n}": RNN[n] for d in ("fw", "bw") for n in "wrbh"}, aux=None,
              fw_aw=None, bw_aw=None, act=0, time_major=major, merge=not major)]
    return found


def both_aux() -> dict[str, Any]:
    """Weights of the auxiliary input for both directions."""
    return {f"{d}_aux_{g}": X((U, A), span=SMALL) for d in ("fw", "bw") for g in "ifco"}


UNIT, WEIGHT = Quant(1 / 128, 128), Quant(0.004, 100)
NUMBERS = {g: X((U,), span=(-500, 500), grid=Quant(0.004 / 128)) for g in ("bi", "bf", "bc", "bo")}
LSTM16 = {"x": X((N, IN), grid=UNIT), **{f"w{g}": X((U, IN), grid=WEIGHT) for g in "ifco"},
          **{f"r{g}": X((U, U), grid=WEIGHT) for g in "ifco"}, **NUMBERS,
          "c": X((N, U), grid=Quant(2 ** -11)), "h": X((N, U), grid=UNIT)}
SCALES = {"i_scale": 0.0005, "f_scale": 0.00025, "c_scale": 0.0005, "o_scale": 0.00025, "h_zero": 3,
          "h_scale": 0.0078125}


def integer_lstm(own: bool, rest: bool) -> Case:
    """QUANTIZED_LSTM: with an input gate, with peepholes, a projection and layer normalisation."""
    gates = (("i", own), ("f", True), ("c", True), ("o", True))
    found: dict[str, Any] = {f"w{g}": X((U, IN), grid=Quant(0.01)) if there else None for g, there in gates}
    found |= {f"r{g}": X((U, OUT if rest else U), grid=Quant(0.01)) if there else None for g, there in gates}
    found |= {f"p{g}": X((U,), grid=Quant(3e-5)) if rest and there else None for g, there in gates if g != "c"}
    found |= {f"b{g}": X((U,), span=(-500, 500)) if there else None for g, there in gates}
    found |= {"wp": X((OUT, U), grid=Quant(0.01)) if rest else None, "bp": X((OUT,), span=(-99, 99)) if rest else None}
    norm = {f"norm_{g}": X((U,), grid=Quant(5e-5)) if rest and there else None for g, there in gates}
    width, hidden = OUT if rest else U, Quant(0.0078125, 3)
    return c("QUANTIZED_LSTM", x=X((N, IN), grid=Quant(0.05, -4)), **{f"cell_{n}": v for n, v in found.items()},
             h=X((N, width), grid=hidden), c=X((N, U), grid=Quant(2 ** -11)), **norm,
             cell_clip=4.0 if rest else None, proj_clip=0.5 if rest else None, **SCALES,
             out=(hidden, Quant(2 ** -11), hidden))


#: Boxes [x1, y1, x2, y2] within an image of 16 by 16, in eighths.
BOXES = np.array([[0, 0, 40, 40], [8, 8, 64, 80], [0, 16, 128, 128], [4, 4, 44, 44]])
SCORES = X((4, 3), span=(0, 1))
NMS = {"score_threshold": 0.25, "max_detections": 5, "iou_threshold": 0.5, "sigma": 0.5, "nms_score_threshold": 0.125}


def boxes(repeat: int = 1, key: Type = F32) -> X:
    """The boxes, stored in the type that goes with a key."""
    stored = np.tile(BOXES, (1, repeat))
    return X(values=stored if key in (Q8, Q8S, Q16A) else stored / 8)


def images(size: int = 16, key: Type = F32, count: int = 1) -> X:
    """The heights and widths of images."""
    return X(values=np.full((count, 2), size * (8 if key in (Q8, Q8S, Q16A) else 1)))


def regions() -> list[Case]:
    """Operations on regions of both layouts."""
    found = []
    for key in (*FLOATS, Q8, Q8S):
        for nchw in (False, True):
            x, heat = ((2, 3, 8, 8), (4, 2, 5, 5)) if nchw else ((2, 8, 8, 3), (4, 5, 5, 2))
            cut = {"x": x, "rois": boxes(1, key), "batch": [0, 1, 1, 0], "oh": 2, "ow": 3, "h_stride": 2.0,
                   "w_stride": 2.0}
            found += [c("ROI_ALIGN", only=(key,), **cut, h_samples=2, w_samples=0, nchw=nchw),
                      c("ROI_POOLING", only=(key,), **cut, nchw=nchw),
                      c("HEATMAP_MAX_KEYPOINT", only=(key,), heatmap=heat, rois=boxes(1, key), nchw=nchw)]
    return found


def detections() -> list[Case]:
    """Operations that find boxes."""
    found = []
    for key in (*FLOATS, Q8, Q8S):
        found += [c("BOX_WITH_NMS_LIMIT", only=(key,), scores=SCORES, rois=boxes(3, key), batch=[0, 0, 1, 1], kernel=k,
                    **NMS) for k in (0, 1, 2)]
        for nchw in (False, True):
            scores, deltas = ((1, 2, 3, 3), (1, 8, 3, 3)) if nchw else ((1, 3, 3, 2), (1, 3, 3, 8))
            anchors = X(values=BOXES[:2] if key in (Q8, Q8S) else BOXES[:2] / 8)
            found.append(c("GENERATE_PROPOSALS", only=(key,), scores=X(scores, span=(0, 1)),
                           deltas=X(deltas, span=SMALL), anchors=anchors, image_info=images(16, key), h_stride=4.0,
                           w_stride=4.0, pre_nms=12, post_nms=6, iou_threshold=0.5, min_size=1.0, nchw=nchw))
    for key in (*FLOATS, Q16A):
        found.append(c("AXIS_ALIGNED_BBOX_TRANSFORM", only=(key,), rois=X(values=boxes(1, key).values, grid=Quant(
            0.125, 0) if key == Q16A else None), deltas=X((4, 8), span=SMALL), batch=[0, 0, 1, 1],
            image_info=X(values=images(16, key, 2).values, grid=Quant(0.125, 0) if key == Q16A else None),
            out=(Quant(0.125, 0),)))
    return found


def none_at_all() -> list[Case]:
    """Regions and boxes of which there are none."""
    rois, batch = X((0, 4)), X((0,), type=I32)
    cut = {"rois": rois, "batch": batch, "oh": 2, "ow": 2, "h_stride": 1.0, "w_stride": 1.0}
    return [
        c("ROI_ALIGN", x=(1, 4, 4, 2), **cut, h_samples=1, w_samples=1, nchw=False),
        c("ROI_POOLING", x=(1, 4, 4, 2), **cut, nchw=False),
        c("BOX_WITH_NMS_LIMIT", scores=(0, 2), rois=X((0, 8)), batch=batch, kernel=0, **NMS),
        c("HEATMAP_MAX_KEYPOINT", heatmap=(0, 3, 3, 2), rois=rois, nchw=False),
        c("AXIS_ALIGNED_BBOX_TRANSFORM", rois=rois, deltas=(0, 4), batch=batch, image_info=images(),
          only=FLOATS)]


POST = {"y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0, "max_detections": 3, "max_classes": 2,
        "max_per_class": 2, "score_threshold": 0.125, "iou_threshold": 0.375, "background": True}


def graph(code: OperationCode, *, other: float | None = None, out: OperandCode = F32, of: OperandCode = F32,
          shape: tuple[int, ...] = (2, 3), inputs: int = 1) -> Model:
    """A graph that applies an operation of two (to itself, or to a constant) to the first of its inputs."""
    b = ModelBuilder()
    given = [b.add_operand(of, shape), *(b.add_operand(F32, (2, 3)) for _ in range(inputs - 1))]
    y = given[0]
    if other is not None:
        y = b.add_operand(of, (1,))
        b.set_operand_value(y, np.array([other], of.dtype))
    found = b.add_operand(out, shape)
    operands = [given[0], y]
    if code in (OperationCode.ADD, OperationCode.MUL):
        act = b.add_operand(OperandCode.INT32)
        b.set_operand_value(act, 0)
        operands.append(act)
    b.add_operation(code, operands, [found])
    b.identify_inputs_and_outputs(given, [found])
    return b.finish()


def turning() -> Model:
    """The body of a loop: the count goes on, the values double."""
    b = ModelBuilder()
    i, x = b.add_operand(I32, (1,)), b.add_operand(F32, (2, 3))
    one, act, more, twice = (b.add_operand(I32, (1,)), b.add_operand(OperandCode.INT32), b.add_operand(I32, (1,)),
                             b.add_operand(F32, (2, 3)))
    b.set_operand_value(one, [1])
    b.set_operand_value(act, 0)
    b.add_operation(OperationCode.ADD, [i, one, act], [more])
    b.add_operation(OperationCode.ADD, [x, x, act], [twice])
    b.identify_inputs_and_outputs([i, x], [more, twice])
    return b.finish()


BRANCHES = (graph(OperationCode.ADD), graph(OperationCode.MUL))
LOOP = (graph(OperationCode.LESS, other=3, out=B8, of=I32, shape=(1,), inputs=2), turning())
#: [[a, 0, b], [0, 0, c]] by rows; the same in blocks of 1 by 3; a dense one, columns first.
SPARSE: list[dict[str, Any]] = [
    {"order": [0, 1], "block_map": None, "formats": [0, 1], "dims": [2, 3],
     "pairs": [None, None, [0, 2, 3], [0, 2, 2]]},
    {"order": [0, 1, 2], "block_map": [1], "formats": [0, 1, 0], "dims": [2, 2, 3],
     "pairs": [None, None, [0, 1, 1], [1], None, None]},
    {"order": [1, 0], "block_map": None, "formats": [0, 0], "dims": [3, 1], "pairs": [None] * 4}]

CASES: list[Case] = [
    c("RNN", x=(N, IN), **RNN), c("RNN", x=(0, IN), **(RNN | {"h": (0, U)})),
    *(c("SVDF", x=(N, IN), wf=X((6, IN), span=SMALL), wt=X((6, 4), span=SMALL), b=b, state=(N, 24), rank=r, act=act)
      for b, r, act in [(X((3,), span=SMALL), 2, 1), (None, 1, 0)]),
    *lstms(), *sequences(), c("QUANTIZED_16BIT_LSTM", **LSTM16),
    *(integer_lstm(own, rest) for own in (True, False) for rest in (True, False)),
    *(c("LSH_PROJECTION", hash=X((4, 3), span=(-1, 1)), x=X((5, 2), type=kind), weight=(5,) if type_ == 2 else None,
        type=type_) for kind in (F32, I32) for type_ in (2, 3)),
    c("LSH_PROJECTION", hash=X((2, 3), span=(-1, 1)), x=(0, 2), weight=None, type=3),
    *regions(), *detections(),
    *(c("DETECTION_POSTPROCESSING", scores=X((2, 4, 3), span=(0, 1)), deltas=X((2, 4, 5), span=SMALL),
        anchors=X((4, 4), span=(0.25, 1)), **({"regular": regular} | POST)) for regular in (True, False)),
    *(c("IF", cond=X(values=[cond]), then=BRANCHES[0], orelse=BRANCHES[1], args=[(2, 3)]) for cond in (True, False)),
    *(c("WHILE", cond=LOOP[0], body=LOOP[1], values=[X(type=I32, values=[start]), (2, 3)], out=(None, None)[:count])
      for start in (0, 5) for count in (1, 2)),
    *(c("RANDOM_MULTINOMIAL", logits=(3, 4), samples=9, seeds=seeds) for seeds in ([1, 2], [-3, 0])),
    c("RANDOM_MULTINOMIAL", logits=(0, 4), samples=3, seeds=[1, 2]),
    c("LSTM", x=(0, IN), **weights("cell"), h=(0, OUT), c=(0, U), **CLIPS),
    c("SVDF", x=(0, IN), wf=(4, IN), wt=(4, 2), b=None, state=(0, 8), rank=1, act=0),
    c("UNIDIRECTIONAL_SEQUENCE_RNN", x=(0, T, IN), **(RNN | {"h": (0, U)}), time_major=0),
    c("UNIDIRECTIONAL_SEQUENCE_LSTM", x=(0, T, IN), **weights("cell"), h=(0, OUT), c=(0, U), **CLIPS, time_major=False,
      **norms("norm", False)),
    *none_at_all(),
    *(c("DENSIFY", x=(3,), **SPARSE[i]) for i in (0, 1, 2)),
    c("DENSIFY", x=X(values=[]), **(SPARSE[0] | {"pairs": [None, None, [0, 0, 0], None]})),
    c("DENSIFY", only=(QS, Q16S), x=X((3,), grid=Quant(1e-6)), **SPARSE[0]),
]
