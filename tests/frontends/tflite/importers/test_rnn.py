"""Recurrent operators: what they become, and files that leave out or add what they cannot."""
from __future__ import annotations

from typing import Any

import pytest
from recurrent_cases import FILES, TANH, UNITS, WIDTH, Maker, cell

from nnx_convert.errors import FormatError, NnxError, Unsupported
from nnx_convert.frontends.tflite.importer import load

BECOMES = {
    "SVDF": "SVDF", "int8 SVDF": "host.SVDF", "hybrid SVDF": "HYBRID_SVDF", "hybrid RNN": "SEQUENCE_RNN",
    "LSTM": "UNIDIRECTIONAL_SEQUENCE_LSTM", "hybrid LSTM": "HYBRID_LSTM", "LSTM of one step": "LSTM",
    "hybrid LSTM of one step": "HYBRID_LSTM", "int8 LSTM": "QUANTIZED_SEQUENCE_LSTM",
    "int8 LSTM of one step": "QUANTIZED_SEQUENCE_LSTM", "LSTM both ways": "BIDIRECTIONAL_SEQUENCE_LSTM",
    "uint8 LSTM of one matrix": "CONCATENATION BASIC_LSTM"}


@pytest.mark.parametrize("name", BECOMES)
def test_a_recurrent_operator_becomes_these_operations(name: str) -> None:
    graph = load(FILES[name][0](1))
    found = [n.op.name for n in graph.nodes]
    assert " ".join(found[:len(BECOMES[name].split())]) == BECOMES[name]
    assert [p.name for p in graph.rim.inputs if p.state] == [p.name for p in graph.rim.outputs if p.state] != []


def test_rnns_have_the_activations_of_nnapi_s_own() -> None:
    own = {s: load(FILES["RNN"][0](s)).nodes[0].op.name for s in (0, 1)}
    assert own == {0: "SEQUENCE_RNN", 1: "RNN"}                     # tanh, relu
    over_time = {s: load(FILES["sequence RNN"][0](s)).nodes[0].op.name for s in (0, 1)}
    assert over_time == {0: "SEQUENCE_RNN", 1: "UNIDIRECTIONAL_SEQUENCE_RNN"}


def file(name: str, options: str, count: int, intermediates: int = 0, **values: Any) -> bytes:
    """A model with the first `count` inputs of an int8 LSTM, filled up with the last one."""
    m = Maker(0)
    ins = [m.port("int8", 2, WIDTH, scale=0.02), *cell(m, "int8", "", "int32", "int16"),
           m.port("int8", 2, UNITS, scale=0.008, variable=True),
           m.port("int16", 2, UNITS, scale=2.0**-11, variable=True)]
    ins = [*ins, *[ins[-1]] * 40][:count]
    grids = [m.port("int8", 1, scale=0.01) for _ in range(intermediates)]
    outs = [m.port("int8", 2, UNITS, scale=0.008)]
    return m.file(name, ins, outs, options, {"FusedActivationFunction": TANH} | values, grids)


REFUSED: list[tuple[type[NnxError], str, bytes]] = [
    (FormatError, "24 at most", file("LSTM", "LSTMOptions", 25)),
    (FormatError, "do not fit", file("LSTM", "LSTMOptions", 12)),
    (FormatError, "not 5", file("LSTM", "LSTMOptions", 20, KernelType=1)),
    (FormatError, "its weights are", file("LSTM", "LSTMOptions", 5, KernelType=1)),
    (Unsupported, "3 intermediate tensors", file("LSTM", "LSTMOptions", 20, 3)),
    (Unsupported, "12 intermediate tensors", file("LSTM", "LSTMOptions", 20, 12)),
    (FormatError, "48 at most", file("BIDIRECTIONAL_SEQUENCE_LSTM", "BidirectionalSequenceLSTMOptions", 50)),
    (FormatError, "left out", file("BIDIRECTIONAL_SEQUENCE_LSTM", "BidirectionalSequenceLSTMOptions", 20)),
    (FormatError, "not 9 to 12", file("BIDIRECTIONAL_SEQUENCE_RNN", "BidirectionalSequenceRNNOptions", 8)),
    (FormatError, "not 9 to 12", file("BIDIRECTIONAL_SEQUENCE_RNN", "BidirectionalSequenceRNNOptions", 13)),
    (Unsupported, "diagonals", file("UNIDIRECTIONAL_SEQUENCE_LSTM", "UnidirectionalSequenceLSTMOptions", 20,
                                    DiagonalRecurrentTensors=True))]


@pytest.mark.parametrize(("error", "says", "data"), REFUSED, ids=[says for _, says, _ in REFUSED])
def test_what_cannot_be_is_refused_with_the_reason(error: type[NnxError], says: str, data: bytes) -> None:
    with pytest.raises(error, match=says):
        load(data)
