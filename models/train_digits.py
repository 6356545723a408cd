"""Makes the files of this folder from scikit-learn's digits: `python models/train_digits.py`, about half a minute.

The same machine and packages give the same bytes.
"""
from __future__ import annotations

import argparse
from pathlib import Path

import digits_onnx
import digits_tflite
import numpy as np
from digits_network import Array, Layer, Network, Parameters
from digits_training import Pruning, train
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

HERE = Path(__file__).resolve().parent
HELD_OUT, SPLIT_SEED, SEED = 360, 0, 1
EPOCHS, SPARSE_EPOCHS = 80, 120

CNN: Network = (
    Layer("conv1", "conv", 1, 16, side=3),
    Layer("depthwise", "depthwise", 16, 16, side=3),
    Layer("conv2", "conv", 16, 32),
    Layer("pool1", "pool"),
    Layer("conv3", "conv", 32, 32, side=3),
    Layer("pool2", "pool"),
    Layer("dense", "dense", 128, 10, relu=False),
)
SPARSE: Network = (
    Layer("conv1", "conv", 1, 16, side=3),
    Layer("pool1", "pool"),
    Layer("conv2", "conv", 16, 64, side=3),
    Layer("pool2", "pool"),
    Layer("dense1", "dense", 256, 128),
    Layer("dense2", "dense", 128, 10, relu=False),
)
PRUNING = Pruning({"conv2.weight": 0.85, "dense1.weight": 0.9, "dense2.weight": 0.7}, block=4)


def main() -> None:
    """Trains both networks and writes five files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=HERE, help="the folder to write to")
    folder: Path = parser.parse_args().into
    images, labels, (test_images, test_labels) = split()
    # The order of a threaded sum follows the number of threads: one thread keeps the bytes.
    with threadpool_limits(1):
        cnn = train(CNN, images, labels, epochs=EPOCHS, seed=SEED)
        sparse = train(SPARSE, images, labels, epochs=SPARSE_EPOCHS, seed=SEED, after_step=PRUNING)
        files = encoded(cnn, sparse, images)
    for name, data in files.items():
        (folder / name).write_bytes(data)
        print(f"{name:22} {len(data):7} bytes")
    dense = digits_tflite.write(SPARSE, sparse, digits_tflite.float_encoding(), "digits, the sparse network dense")
    print(f"pruned weights are zero to {sparsity(sparse):.1%}; stored dense the file has {len(dense)} bytes")
    np.savez_compressed(folder / "digits_test.npz", images=test_images, labels=test_labels)


def split() -> tuple[Array, Array, tuple[Array, Array]]:
    """Training images (float32 [N, 8, 8, 1] in 0..1) and labels; the held-out ones as 0..16 in uint8 [360, 8, 8]."""
    digits = load_digits()
    order = np.random.default_rng(SPLIT_SEED).permutation(len(digits.target))
    held, kept = order[:HELD_OUT], order[HELD_OUT:]
    return ((digits.images[kept, :, :, None] / 16).astype(np.float32), digits.target[kept],
            (digits.images[held].astype(np.uint8), digits.target[held].astype(np.uint8)))


def encoded(cnn: Parameters, sparse: Parameters, images: Array) -> dict[str, bytes]:
    """The bytes of every model file by name."""
    plain, int8 = digits_tflite.float_encoding(), digits_tflite.int8_encoding(CNN, cnn, images)
    blocks = digits_tflite.sparse_encoding(PRUNING.block)
    return {
        "digits_cnn.tflite": digits_tflite.write(CNN, cnn, plain, "digits, float32"),
        "digits_cnn.onnx": digits_onnx.write(CNN, cnn, "digits, float32"),
        "digits_cnn_int8.tflite": digits_tflite.write(CNN, cnn, int8, "digits, int8"),
        "digits_sparse.tflite": digits_tflite.write(SPARSE, sparse, blocks, "digits, block-sparse float32"),
    }


def sparsity(parameters: Parameters) -> float:
    """The fraction of zeros among the pruned weights."""
    pruned = np.concatenate([parameters[name].ravel() for name in PRUNING.sparsity])
    return float((pruned == 0).mean())


if __name__ == "__main__":
    main()
