"""Small graphs for the rules of functions that NNAPI has not, and where a host operation is left."""
from __future__ import annotations

from rule_cases import F, I, Y, Kind, Made, of

from nnx_convert.ops import elementwise as e, functions as f, host, host_math as m, norm
from nnx_convert.types import F16, F32

HALF = (F16, (2, 3, 4))
FUNCTIONS: dict[str, tuple[Made, list[Kind]]] = {
    **{o.name.lower(): (of(o), [F]) for o in (f.ERF, f.SOFTPLUS, f.MISH, f.SINH, f.COSH)},
    "gelu": (of(m.GELU, approximate=True), [F]), "gelu_exact": (of(m.GELU, approximate=False), [F]),
    "trunc_mod": (of(f.TRUNC_MOD), [F, F]), "trunc_mod_int": (of(f.TRUNC_MOD), [I, I]),
    "bitwise_not_int": (of(f.BITWISE_NOT), [I]),
    **{f"{o.name.lower()}_half": (of(o, **named), [HALF]) for o, named in {
        f.ERF: {}, f.MISH: {}, host.COS: {}, host.ROUND: {}, m.GELU: {"approximate": False}, host.RELU_0_TO_1: {},
        host.LEAKY_RELU: {"alpha": 1.5}}.items()},
    "elu": (of(e.ELU, alpha=0.5), [F]),
    **{f"softmax_{a}": (of(norm.SOFTMAX, beta=0.5, axis=a), [F]) for a in (0, 1, -1)},
    "softmax_byte": (of(norm.SOFTMAX, beta=0.5, axis=2), [Y]),
    "softmax_row": (of(norm.SOFTMAX, beta=1.0), [(F32, (9,))]),
    "matmul_stretched": (of(host.MATMUL, adj_x=False, adj_y=True), [(F32, (2, 1, 3, 4)), (F32, (3, 5, 4))]),
    "matmul_half": (of(host.MATMUL, adj_x=True, adj_y=False), [(F16, (2, 3, 4)), (F16, (2, 3, 5))]),
    "matmul_many": (of(host.MATMUL, adj_x=False, adj_y=False), [(F32, (65, 1, 2)), (F32, (65, 2, 1))]),
}
#: Cases that need a host operation, by the targets (as their indices in TARGETS) on which they do.
FUNCTIONS_HOSTED = {name: where for where, names in {
    (0, 1): "sinh cosh elu", (1, 2): "softmax_0 softmax_1", (0, 1, 2): """
        mish softplus matmul_half matmul_stretched
        erf_half mish_half cos_half round_half gelu_half relu_0_to_1_half leaky_relu_half
    """,
    (0, 1, 2, 3, 4): "trunc_mod_int bitwise_not_int", tuple(range(7)): "matmul_many", tuple(range(8)): "trunc_mod",
}.items() for name in names.split()}
