"""Codes of the host's extension stand in files: none may ever mean another operation."""
from __future__ import annotations

from nnx_convert.ops.host import COMPOSITES, host_twin, op_of
from nnx_convert.schema import HOST_CODES, OPS

#: Of the extension's own operations, the number.
NUMBERS = {
    "CONV_3D": 60000, "SCATTER_ND": 60001, "NON_ZERO": 60002, "RFFT": 60003, "COMPLEX_ABS": 60004, "ATAN2": 60005,
    "SEGMENT_SUM": 60006, "SHAPE": 60007, "RANGE": 60008, "TOPK": 60009, "UNIQUE": 60010, "SPARSE_TO_DENSE": 60011,
    "EMBEDDING_LOOKUP_SPARSE": 60012, "UNSORTED_SEGMENT_SUM": 60013, "UNSORTED_SEGMENT_PROD": 60014,
    "UNSORTED_SEGMENT_MAX": 60015, "UNSORTED_SEGMENT_MIN": 60016, "CONV_3D_TRANSPOSE": 60017,
    "NON_MAX_SUPPRESSION": 60018, "RESIZE": 60019, "SKIP_GRAM": 60020, "BITCAST": 60030, "BITWISE_XOR": 60031,
    "RIGHT_SHIFT": 60032, "REAL": 60033, "IMAG": 60034, "FAKE_QUANT": 60035, "RANDOM_UNIFORM": 60036,
    "RANDOM_STANDARD_NORMAL": 60037, "HYBRID_FULLY_CONNECTED": 60100, "HYBRID_CONV_2D": 60101,
    "HYBRID_DEPTHWISE_CONV_2D": 60102, "HYBRID_TRANSPOSE_CONV_2D": 60103, "HYBRID_MATMUL": 60104, "HYBRID_SVDF": 60105,
    "SEQUENCE_RNN": 60106, "HYBRID_LSTM": 60107, "QUANTIZED_SEQUENCE_LSTM": 60110, "BASIC_LSTM": 60111,
    "ADD_BY_SHIFTS": 60120,
    "SUB_BY_SHIFTS": 60121, "ASIN": 60630, "ACOS": 60631, "ATAN": 60632, "ASINH": 60633, "ACOSH": 60634,
    "ATANH": 60635, "SINH": 60636, "COSH": 60637, "TAN": 60638, "BITWISE_AND": 60639, "BITWISE_OR": 60640,
    "BITWISE_NOT": 60641, "SHIFT": 60642, "DETERMINANT": 60643, "EINSUM": 60644, "INTEGER_POWER": 60645,
    "MATRIX_INVERSE": 60646,
    "SCATTER_ELEMENTS": 60550, "SCATTER_TUPLES": 60551, "WRITE_ROWS": 60552, "COMPRESS": 60553, "UNIQUE_ALONG": 60554,
    "ONE_HOT": 60555, "CUT": 60560, "PAD_BY": 60561, "SPLIT_BY": 60562, "UNSQUEEZE": 60563, "COUNT": 60564,
    "EYE": 60565, "CHUNK": 60566, "CUMULATE": 60570,
    "CONVERT": 60400,
    "host.LEAKY_RELU": 61000, "host.SQUARE": 61001, "host.MATMUL": 61013, "host.REQUANTIZE": 61018,
    "host.MATRIX_DIAG": 61019, "host.MATRIX_SET_DIAG": 61020, "host.REVERSE_SEQUENCE": 61021,
    "host.DYNAMIC_UPDATE_SLICE": 61022, "host.DILATE": 61023, "host.REDUCE_WINDOW": 61024, "host.SIGN": 61025,
    "host.GELU": 61026, "host.BUCKETIZE": 61027, "host.CUMSUM": 61028,
    "host.LINEAR": 61029, "host.ERF": 61030, "host.SOFTPLUS": 61031, "host.MISH": 61032, "host.TRUNC_MOD": 61033}


def test_numbers_are_what_they_were() -> None:
    found = {n: op_of(HOST_CODES | number) for n, number in NUMBERS.items()}
    assert {n: o and o.name for n, o in found.items()} == {n: n for n in NUMBERS}


def test_every_composite_has_a_number() -> None:
    assert {*COMPOSITES} == {o.name for o in OPS.values() if o.code is None}
    assert len({host_twin(OPS[n]).code for n in COMPOSITES}) == len(COMPOSITES)
