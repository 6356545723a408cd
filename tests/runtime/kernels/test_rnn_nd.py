"""Activations of ONNX's recurrent sequences; what the sequences give is held against the standard by the importers."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from one_op import run_op, tensor

from nnx_convert.ops import rnn_nd as r
from nnx_convert.types import F32, F64, I32, Type

#: Of -100, -2, -0.25, 0, 0.5 and 100 with alpha 0.5 and beta 0.25, by name.
X = np.array([-100, -2, -0.25, 0, 0.5, 100])
WANT: dict[str, Any] = {
    "Relu": [0, 0, 0, 0, 0.5, 100], "Tanh": np.tanh(X), "Sigmoid": [0, 1 / (1 + np.e ** 2), 1 / (1 + np.e ** 0.25), 0.5,
                                                                    1 / (1 + np.e ** -0.5), 1],
    "Affine": 0.5 * X + 0.25, "LeakyRelu": [-50, -1, -0.125, 0, 0.5, 100], "ThresholdedRelu": [0, 0, 0, 0, 0.5, 100],
    "ScaledTanh": 0.5 * np.tanh(0.25 * X), "HardSigmoid": [0, 0, 0.125, 0.25, 0.5, 1],
    "Elu": [-0.5, 0.5 * np.expm1(-2), 0.5 * np.expm1(-0.25), 0, 0.5, 100],
    "Softsign": [-100 / 101, -2 / 3, -0.2, 0, 1 / 3, 100 / 101],
    "Softplus": [0, np.log1p(np.exp(-2)), np.log1p(np.exp(-0.25)), np.log(2), np.log1p(np.exp(0.5)), 100]}


def activated(name: str, kind: Type, clip: float = 0.0) -> list[Any]:
    """What one step of a network makes of X."""
    one = {n: tensor(v, F32) for n, v in (("alpha", [0.5]), ("beta", [0.25]))}
    args = {"x": tensor(X.reshape(1, -1, 1), kind), "w": tensor([[[1]]], kind), "r": tensor([[[0]]], kind), "b": None,
            "lengths": None, "h": None, "acts": tensor([[*r.ACTIVATIONS].index(name)], I32), "clip": clip,
            "backward": False, **one}
    return list(run_op(r.RNN_SEQUENCE, args)[0].reshape(-1))


@pytest.mark.parametrize("kind", [F32, F64], ids=lambda k: k.name)
@pytest.mark.parametrize("name", r.ACTIVATIONS)
def test_an_activation(name: str, kind: Type) -> None:
    np.testing.assert_allclose(activated(name, kind), WANT[name], rtol=1e-6, atol=1e-30)


def test_what_goes_into_an_activation_is_clipped() -> None:
    assert activated("Affine", F64, 0.25) == [0.125, 0.125, 0.125, 0.25, 0.375, 0.375]
