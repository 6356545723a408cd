"""Cases of convolutions, products, pools, resizing, blocks and normalisation."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from row_case import FLOATS, Case, X, c

from nnx_convert.types import I32

LAYOUTS = (False, True)


def image(n: int, h: int, w: int, depth: int, nchw: bool) -> tuple[int, ...]:
    """A shape in either layout."""
    return (n, depth, h, w) if nchw else (n, h, w, depth)


PADS = [{"pl": 0, "pr": 0, "pt": 0, "pb": 0}, {"pl": 1, "pr": 0, "pt": 1, "pb": 1},
        {"pl": 2, "pr": 1, "pt": 0, "pb": 1}]
STEPS = [{"sw": 1, "sh": 1}, {"sw": 2, "sh": 1}, {"sw": 2, "sh": 3}]
DILATED = {"dw": 2, "dh": 1}


def conv(op: str, depth: int, units: int, w: tuple[int, ...], **more: Any) -> list[Case]:
    """A convolution by amounts and by scheme, in both layouts; one of no images."""
    def named(nchw: bool, n: int = 2, **how: Any) -> dict[str, Any]:
        return {"x": image(n, 6, 5, depth, nchw), "w": w, "b": (units,), **how, **more, "nchw": nchw}
    late = op not in ("GROUPED_CONV_2D", "TRANSPOSE_CONV_2D")
    tail = DILATED if late else {}
    return [
        *(c(op, **named(nchw, **p, **s, act=act)) for nchw, (p, s, act) in
          product(LAYOUTS, zip(PADS, STEPS, (0, 1, 3), strict=True))),
        *(c(op, 1, **named(nchw, scheme=scheme, **STEPS[scheme - 1], act=2 - scheme)) for nchw in LAYOUTS
          for scheme in (1, 2) if op != "TRANSPOSE_CONV_2D"),
        *(c(op, **named(nchw, **PADS[1], **STEPS[0], act=0), **tail) for nchw in LAYOUTS if tail),
        *(c(op, 1, **named(nchw, scheme=1, **STEPS[0], act=2), **tail) for nchw in LAYOUTS if tail),
        c(op, **named(False, n=0, **PADS[0], **STEPS[0], act=0))]


def scattered() -> list[Case]:
    """Transposed convolutions to a given shape."""
    return [c("TRANSPOSE_CONV_2D", 1, x=image(2, 4, 3, 3, nchw), w=(4, 3, 2, 3), b=(4,), shape=list(image(
        2, h, w, 4, nchw)), scheme=scheme, sw=2, sh=3, act=1, nchw=nchw) for nchw in LAYOUTS
        for scheme, h, w in [(1, 12, 6), (1, 10, 5), (2, 12, 6)]]


def pools(op: str) -> list[Case]:
    """A pool by amounts and by scheme, in both layouts."""
    found = []
    for nchw, act in product(LAYOUTS, (0, 1, 2, 3)):
        x = image(2, 7, 6, 3, nchw)
        found += [c(op, x=x, **PADS[act % 3], **STEPS[act % 3], kw=3, kh=2, act=act, nchw=nchw),
                  c(op, 1, x=x, scheme=1 + act % 2, **STEPS[act % 3], kw=2, kh=3, act=act, nchw=nchw)]
    return [*found, c(op, x=(1, 20, 20, 2), **PADS[0], sw=20, sh=20, kw=20, kh=20, act=0),
            c(op, x=(0, 4, 4, 2), **PADS[0], sw=1, sh=1, kw=2, kh=2, act=0)]


RESIZED = ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
GRIDS_OF_CELLS = [(False, False), (True, False), (False, True)]
#: y is as deep as x is, in either orientation.
MATRICES = [((3, 4), (4, 5), False, False), ((2, 4, 3), (2, 4, 5), True, False), ((2, 3, 4), (2, 5, 4), False, True),
            ((1, 2, 4, 3), (1, 2, 5, 4), True, True), ((0, 3, 4), (0, 4, 2), False, False)]
LINES = [((2, 5), -1), ((3, 4, 2), 1), ((2, 3, 2, 5), 3), ((2, 3, 2, 5), 1), ((6,), 0), ((2, 3, 2, 5), -4)]
NORM = {"radius": 1, "bias": 1.5, "alpha": 0.25, "beta": 0.5}

CASES: list[Case] = [
    *conv("CONV_2D", 3, 4, (4, 3, 2, 3)), *conv("CONV_2D", 5, 2, (2, 1, 1, 5)),
    *conv("DEPTHWISE_CONV_2D", 3, 6, (1, 3, 2, 6), mult=2), *conv("DEPTHWISE_CONV_2D", 2, 2, (1, 2, 3, 2), mult=1),
    *conv("GROUPED_CONV_2D", 4, 6, (6, 3, 2, 2), groups=2),
    *conv("TRANSPOSE_CONV_2D", 3, 4, (4, 3, 2, 3)), *scattered(),
    *(c("FULLY_CONNECTED", x=x, w=(4, 6), b=(4,), act=act) for x, act in [
        ((3, 6), 0), ((2, 3, 6), 1), ((2, 3, 2, 3), 2), ((1, 6), 3), ((0, 6), 0)]),
    *(c("BATCH_MATMUL", x=x, y=y, adj_x=a, adj_y=b) for x, y, a, b in MATRICES),
    *(k for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D") for k in pools(op)),
    *(c(op, x=image(2, 4, 5, 3, nchw), ow=ow, oh=oh, nchw=nchw, align=a, half=h) for op in RESIZED for nchw in LAYOUTS
      for a, h in GRIDS_OF_CELLS for ow, oh in [(10, 8), (3, 2), (5, 4), (1, 7)]),
    *(c(op, 1, x=image(1, 4, 5, 2, nchw), w_scale=ws, h_scale=hs, nchw=nchw) for op in RESIZED for nchw in LAYOUTS
      for ws, hs in [(2.0, 1.5), (0.5, 0.25), (1.0, 3.0)]),
    *(c(op, x=(0, 4, 5, 2), ow=3, oh=3, nchw=False) for op in RESIZED),
    *(c("DEPTH_TO_SPACE", x=image(2, 3, 2, 12, nchw), block=2, nchw=nchw) for nchw in LAYOUTS),
    *(c("SPACE_TO_DEPTH", x=image(2, 4, 6, 3, nchw), block=2, nchw=nchw) for nchw in LAYOUTS),
    *(c("BATCH_TO_SPACE_ND", x=image(12, 2, 3, 2, nchw), blocks=[2, 3], nchw=nchw) for nchw in LAYOUTS),
    *(c("SPACE_TO_BATCH_ND", x=image(2, 4, 4, 3, nchw), blocks=[2, 3], pads=[[1, 1], [2, 0]], nchw=nchw)
      for nchw in LAYOUTS),
    *(c(op, x=(0, 2, 2, 4), block=2) for op in ("DEPTH_TO_SPACE", "SPACE_TO_DEPTH")),
    c("BATCH_TO_SPACE_ND", x=(0, 2, 2, 3), blocks=[2, 1]),
    c("SPACE_TO_BATCH_ND", x=(0, 2, 2, 3), blocks=[2, 1], pads=[[1, 1], [0, 0]]),
    c("L2_NORMALIZATION", x=(0, 4), axis=1), c("LOCAL_RESPONSE_NORMALIZATION", x=(0, 4), **NORM, axis=1),
    c("INSTANCE_NORMALIZATION", x=(0, 2, 2, 3), gamma=1.0, beta=0.0, eps=0.5, nchw=False),
    c("LOG_SOFTMAX", x=(0, 4), beta=1.0, axis=1),
    *(c("L2_NORMALIZATION", x=x, axis=axis) for x, axis in LINES), c("L2_NORMALIZATION", x=(1, 2, 2, 3)),
    *(c("LOCAL_RESPONSE_NORMALIZATION", x=x, **NORM, axis=axis) for x, axis in LINES),
    c("LOCAL_RESPONSE_NORMALIZATION", x=(1, 2, 2, 7), **(NORM | {"radius": 20})),
    *(c("INSTANCE_NORMALIZATION", x=image(2, 3, 4, 5, nchw), gamma=gamma, beta=0.5, eps=0.0009765625, nchw=nchw)
      for nchw in LAYOUTS for gamma in (1.0, -2.0)),
    *(c("SOFTMAX", x=x, beta=beta, axis=axis) for x, axis in LINES for beta in (1.0, 0.25)),
    c("SOFTMAX", x=(3, 300), beta=1.0), c("SOFTMAX", x=(0, 4), beta=1.0),
    *(c("LOG_SOFTMAX", x=x, beta=beta, axis=axis) for x, axis in LINES for beta in (1.0, 0.25)),
    c("LOG_SOFTMAX", only=FLOATS, x=X(values=np.array([[60000.0, -60000.0, 1.0]])), beta=1.0, axis=-1),
    c("SOFTMAX", only=FLOATS, x=X(values=np.array([[60000.0, 59999.0, -60000.0]])), beta=1.0),
    c("BATCH_MATMUL", only=(I32,), x=X(values=[[2 ** 20, 3]]), y=X(values=[[5], [-7]]), adj_x=False, adj_y=False),
]
