"""NNAPI's codes: operand types, operations, fused activations, paddings, results, feature levels.

The numbers are those of the NDK's NeuralNetworks.h, of NeuralNetworksEx.h (NNAPI-EX) and of
NeuralNetworksExperimentalFeatures.h (DENSIFY). Names are theirs less `ANEURALNETWORKS_`.
"""
from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class OperandCode(IntEnum):
    """Operand types; those from 65536 on belong to the extension org.nnx_convert.host."""

    FLOAT32 = 0
    INT32 = 1
    UINT32 = 2
    TENSOR_FLOAT32 = 3
    TENSOR_INT32 = 4
    TENSOR_QUANT8_ASYMM = 5
    BOOL = 6
    TENSOR_QUANT16_SYMM = 7
    TENSOR_FLOAT16 = 8
    TENSOR_BOOL8 = 9
    FLOAT16 = 10
    TENSOR_QUANT8_SYMM_PER_CHANNEL = 11
    TENSOR_QUANT16_ASYMM = 12
    TENSOR_QUANT8_SYMM = 13
    TENSOR_QUANT8_ASYMM_SIGNED = 14
    MODEL = 15
    # What source models hold and NNAPI has no type for.
    TENSOR_INT64 = 0x1_0000
    TENSOR_FLOAT64 = 0x1_0001
    TENSOR_INT16 = 0x1_0002
    TENSOR_UINT32 = 0x1_0003
    TENSOR_COMPLEX64 = 0x1_0004
    TENSOR_UINT64 = 0x1_0005
    TENSOR_STRING = 0x1_0006
    TENSOR_BFLOAT16 = 0x1_0007
    TENSOR_FLOAT8_E4M3FN = 0x1_0008
    TENSOR_FLOAT8_E4M3FNUZ = 0x1_0009
    TENSOR_FLOAT8_E5M2 = 0x1_000A
    TENSOR_FLOAT8_E5M2FNUZ = 0x1_000B
    TENSOR_FLOAT8_E8M0 = 0x1_000C
    TENSOR_FLOAT4_E2M1 = 0x1_000D
    TENSOR_INT4 = 0x1_000E
    TENSOR_UINT4 = 0x1_000F
    TENSOR_INT2 = 0x1_0010
    TENSOR_UINT2 = 0x1_0011
    TENSOR_COMPLEX128 = 0x1_0012
    TENSOR_LIST = 0x1_0013

    @property
    def group(self) -> str:
        """What tells operand orders apart: tensor, int, float, bool or model."""
        return _GROUP.get(self, "tensor")

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type of the elements."""
        return _dtypes().get(self) or dtype_of(_NARROW[self])


_GROUP = {OperandCode.FLOAT32: "float", OperandCode.FLOAT16: "float", OperandCode.INT32: "int",
          OperandCode.UINT32: "int", OperandCode.BOOL: "bool", OperandCode.MODEL: "model"}
#: The types that NumPy has not, by their names in ml_dtypes: elements of a byte, BFLOAT16 of two.
_NARROW = {OperandCode[f"TENSOR_{name}"]: dtype for name, dtype in {
    "BFLOAT16": "bfloat16", "FLOAT8_E4M3FN": "float8_e4m3fn", "FLOAT8_E4M3FNUZ": "float8_e4m3fnuz",
    "FLOAT8_E5M2": "float8_e5m2", "FLOAT8_E5M2FNUZ": "float8_e5m2fnuz", "FLOAT8_E8M0": "float8_e8m0fnu",
    "FLOAT4_E2M1": "float4_e2m1fn", "INT4": "int4", "UINT4": "uint4", "INT2": "int2", "UINT2": "uint2"}.items()}
NARROW_DTYPES = frozenset(_NARROW.values())


def dtype_of(name: str) -> np.dtype[Any]:
    """The NumPy type of a name; ml_dtypes, which has the narrow ones, is imported where one of them is asked for."""
    import numpy as np
    if name not in NARROW_DTYPES:
        return np.dtype("object" if name == "str" else name)
    import ml_dtypes
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return found


@cache
def _dtypes() -> dict[OperandCode, np.dtype[Any]]:
    """The NumPy types that are NumPy's own; it is imported only here, so that codes and errors cost nothing."""
    import numpy as np
    return {OperandCode[name]: np.dtype(code) for name, code in {
        "FLOAT32": "f4", "INT32": "i4", "UINT32": "u4", "BOOL": "?", "FLOAT16": "f2", "TENSOR_FLOAT32": "f4",
        "TENSOR_FLOAT16": "f2", "TENSOR_INT32": "i4", "TENSOR_BOOL8": "?", "TENSOR_QUANT8_ASYMM": "u1",
        "TENSOR_QUANT8_ASYMM_SIGNED": "i1", "TENSOR_QUANT8_SYMM": "i1", "TENSOR_QUANT8_SYMM_PER_CHANNEL": "i1",
        "TENSOR_QUANT16_ASYMM": "u2", "TENSOR_QUANT16_SYMM": "i2", "TENSOR_INT64": "i8", "TENSOR_FLOAT64": "f8",
        "TENSOR_INT16": "i2", "TENSOR_UINT32": "u4", "TENSOR_COMPLEX64": "c8",
        "TENSOR_UINT64": "u8", "TENSOR_STRING": "O", "TENSOR_COMPLEX128": "c16", "TENSOR_LIST": "O"}.items()}


class OperationCode(IntEnum):
    """NNAPI operations, DENSIFY among them: what `ModelBuilder.add_operation` takes."""

    ADD = 0
    AVERAGE_POOL_2D = 1
    CONCATENATION = 2
    CONV_2D = 3
    DEPTHWISE_CONV_2D = 4
    DEPTH_TO_SPACE = 5
    DEQUANTIZE = 6
    EMBEDDING_LOOKUP = 7
    FLOOR = 8
    FULLY_CONNECTED = 9
    HASHTABLE_LOOKUP = 10
    L2_NORMALIZATION = 11
    L2_POOL_2D = 12
    LOCAL_RESPONSE_NORMALIZATION = 13
    LOGISTIC = 14
    LSH_PROJECTION = 15
    LSTM = 16
    MAX_POOL_2D = 17
    MUL = 18
    RELU = 19
    RELU1 = 20
    RELU6 = 21
    RESHAPE = 22
    RESIZE_BILINEAR = 23
    RNN = 24
    SOFTMAX = 25
    SPACE_TO_DEPTH = 26
    SVDF = 27
    TANH = 28
    BATCH_TO_SPACE_ND = 29
    DIV = 30
    MEAN = 31
    PAD = 32
    SPACE_TO_BATCH_ND = 33
    SQUEEZE = 34
    STRIDED_SLICE = 35
    SUB = 36
    TRANSPOSE = 37
    ABS = 38
    ARGMAX = 39
    ARGMIN = 40
    AXIS_ALIGNED_BBOX_TRANSFORM = 41
    BIDIRECTIONAL_SEQUENCE_LSTM = 42
    BIDIRECTIONAL_SEQUENCE_RNN = 43
    BOX_WITH_NMS_LIMIT = 44
    CAST = 45
    CHANNEL_SHUFFLE = 46
    DETECTION_POSTPROCESSING = 47
    EQUAL = 48
    EXP = 49
    EXPAND_DIMS = 50
    GATHER = 51
    GENERATE_PROPOSALS = 52
    GREATER = 53
    GREATER_EQUAL = 54
    GROUPED_CONV_2D = 55
    HEATMAP_MAX_KEYPOINT = 56
    INSTANCE_NORMALIZATION = 57
    LESS = 58
    LESS_EQUAL = 59
    LOG = 60
    LOGICAL_AND = 61
    LOGICAL_NOT = 62
    LOGICAL_OR = 63
    LOG_SOFTMAX = 64
    MAXIMUM = 65
    MINIMUM = 66
    NEG = 67
    NOT_EQUAL = 68
    PAD_V2 = 69
    POW = 70
    PRELU = 71
    QUANTIZE = 72
    QUANTIZED_16BIT_LSTM = 73
    RANDOM_MULTINOMIAL = 74
    REDUCE_ALL = 75
    REDUCE_ANY = 76
    REDUCE_MAX = 77
    REDUCE_MIN = 78
    REDUCE_PROD = 79
    REDUCE_SUM = 80
    ROI_ALIGN = 81
    ROI_POOLING = 82
    RSQRT = 83
    SELECT = 84
    SIN = 85
    SLICE = 86
    SPLIT = 87
    SQRT = 88
    TILE = 89
    TOPK_V2 = 90
    TRANSPOSE_CONV_2D = 91
    UNIDIRECTIONAL_SEQUENCE_LSTM = 92
    UNIDIRECTIONAL_SEQUENCE_RNN = 93
    RESIZE_NEAREST_NEIGHBOR = 94
    QUANTIZED_LSTM = 95
    IF = 96
    WHILE = 97
    ELU = 98
    HARD_SWISH = 99
    FILL = 100
    RANK = 101
    BATCH_MATMUL = 102
    PACK = 103
    MIRROR_PAD = 104
    REVERSE = 105
    DENSIFY = 20000


class OperationCodeEx(IntEnum):
    """NNAPI-EX operations: what `ModelBuilder.add_operation_ex` takes."""

    CAST_EX = 50000
    GATHER_EX = 50001
    TOPK_V2_EX = 50002
    REDUCE_MAX_EX = 50003
    SPLIT_EX = 50004
    RSQRT_EX = 50005
    SQUARED_DIFFERENCE_EX = 50006
    NEG_EX = 50007
    EXP_EX = 50008
    REDUCE_SUM_EX = 50009
    TRANSPOSE_CONV_EX = 50010
    EQUAL_EX = 50011
    ABS_EX = 50012
    PACK_EX = 50013
    UNPACK_EX = 50014
    ARGMAX_EX = 50015
    SQRT_EX = 50016
    NOT_EQUAL_EX = 50017
    LOGICAL_NOT_EX = 50018
    LOGICAL_AND_EX = 50019
    LOGICAL_OR_EX = 50020
    REDUCE_MIN_EX = 50021
    PRELU_EX = 50022
    ONE_HOT_EX = 50023
    GREATER_EQUAL_EX = 50024
    LESS_EX = 50025


class FuseCode(IntEnum):
    """Activations an operation can apply to its result."""

    NONE = 0
    RELU = 1
    RELU1 = 2
    RELU6 = 3


class PaddingCode(IntEnum):
    """Implicit padding schemes."""

    SAME = 1
    VALID = 2


class ResultCode(IntEnum):
    """What an NNAPI call returns."""

    NO_ERROR = 0
    OUT_OF_MEMORY = 1
    INCOMPLETE = 2
    UNEXPECTED_NULL = 3
    BAD_DATA = 4
    OP_FAILED = 5
    BAD_STATE = 6
    UNMAPPABLE = 7
    OUTPUT_INSUFFICIENT_SIZE = 8
    UNAVAILABLE_DEVICE = 9
    MISSED_DEADLINE_TRANSIENT = 10
    MISSED_DEADLINE_PERSISTENT = 11
    RESOURCE_EXHAUSTED_TRANSIENT = 12
    RESOURCE_EXHAUSTED_PERSISTENT = 13
    DEAD_OBJECT = 14


class FeatureLevel(IntEnum):
    """NNAPI feature levels: API levels up to 30, then updatable ones."""

    LEVEL_1 = 27
    LEVEL_2 = 28
    LEVEL_3 = 29
    LEVEL_4 = 30
    LEVEL_5 = 31
    LEVEL_6 = 1000006
    LEVEL_7 = 1000007
    LEVEL_8 = 1000008
    EXPERIMENTAL = 0x7FFFFFFF


#: The feature levels that a device may have, the first one first.
LEVELS = tuple(int(v) for v in FeatureLevel if v is not FeatureLevel.EXPERIMENTAL)
#: What the updatable levels, 6 to 8, are numbered from.
UPDATABLE = 1_000_000


def levelled(number: int) -> int:
    """The feature level that people call by a number, which of the updatable ones is its last digits."""
    return number + UPDATABLE if number + UPDATABLE in LEVELS else number


def spelt(level: int) -> str:
    """A feature level as --target takes it: 30, fl6."""
    return f"fl{level - UPDATABLE}" if level > UPDATABLE else str(level)


def level_of(text: str) -> int:
    """The feature level of such a text, with or without its letters; raises `ValueError` on what is no number."""
    number = text.removeprefix("fl")
    if not number.isdecimal():
        raise ValueError(f"{text!r:.40} is no feature level")
    return levelled(int(number))
