"""Training of a `digits_network`: Adam on the cross entropy of shifted images, and magnitude pruning by blocks."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from digits_network import Array, Network, Parameters, forward, gradients, initial, softmax

BATCH, RATE, DECAY = 64, 2e-3, 1e-4
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
#: What to do with the parameters after the step at this fraction (0..1) of the training.
AfterStep = Callable[[Parameters, float], None]


@dataclass(frozen=True)
class Pruning:
    """Which weights are pruned ("<layer>.weight"), to which fraction of zero blocks, in blocks of `block` inputs."""

    sparsity: Mapping[str, float]
    block: int
    #: Fractions of the training between which the sparsity grows; afterwards the zeros are fixed.
    begin: float = 0.2
    end: float = 0.7

    def __call__(self, parameters: Parameters, progress: float) -> None:
        """Zeroes the weakest blocks, more of them as training goes on (the cubic ramp of Zhu & Gupta, 2017)."""
        if progress < self.begin:
            return
        left = max(0.0, 1 - (progress - self.begin) / (self.end - self.begin))
        for name, final in self.sparsity.items():
            blocks = parameters[name].reshape(-1, self.block)
            strength = np.abs(blocks).sum(axis=1)
            count = round(final * (1 - left ** 3) * len(blocks))
            blocks[np.argsort(strength, kind="stable")[:count]] = 0


def train(network: Network, images: Array, labels: Array, *, epochs: int, seed: int,
          after_step: AfterStep | None = None) -> Parameters:
    """Parameters for float32 images [N, H, W, C] and integer labels [N]; the same for the same seed and machine."""
    rng = np.random.default_rng(seed)
    parameters = initial(network, rng)
    moments = {name: (np.zeros_like(p), np.zeros_like(p)) for name, p in parameters.items()}
    steps = len(images) // BATCH
    for step in range(epochs * steps):
        if step % steps == 0:
            order = rng.permutation(len(images))
        chosen = order[step % steps * BATCH:][:BATCH]
        outputs, backwards = forward(network, parameters, shifted(images[chosen], rng))
        grad = softmax(outputs[network[-1].name])
        grad[np.arange(BATCH), labels[chosen]] -= 1
        progress = (step + 1) / (epochs * steps)
        rate = RATE * (1 + np.cos(np.pi * progress)) / 2
        _adam(parameters, gradients(network, backwards, grad / np.float32(BATCH)), moments, step + 1, float(rate))
        if after_step:
            after_step(parameters, progress)
    return parameters


def shifted(images: Array, rng: np.random.Generator) -> Array:
    """The images, each moved by up to one pixel in both directions; zeros come in."""
    n, h, w, _ = images.shape
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    dy, dx = rng.integers(0, 3, (2, n))
    rows, columns = (dy[:, None] + np.arange(h))[:, :, None], (dx[:, None] + np.arange(w))[:, None, :]
    return np.asarray(padded[np.arange(n)[:, None, None], rows, columns])


def _adam(parameters: Parameters, grads: Mapping[str, Array], moments: Mapping[str, tuple[Array, Array]], step: int,
          rate: float) -> None:
    """One step in place: Adam (Kingma & Ba, 2014) with decoupled weight decay."""
    for name, grad in grads.items():
        first, second = moments[name]
        first += (1 - BETA1) * (grad - first)
        second += (1 - BETA2) * (grad * grad - second)
        move = first / (1 - BETA1 ** step) / (np.sqrt(second / (1 - BETA2 ** step)) + EPSILON)
        parameters[name] -= (rate * (move + DECAY * parameters[name])).astype(np.float32)
