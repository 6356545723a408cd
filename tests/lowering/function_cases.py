"""Small graphs for the rules of functions that NNAPI has not, and where a host operation is left."""
from __future__ import annotations

from rule_cases import F, I, Kind, Made, of

from nnx_convert.ops import functions as f, host_math as m

FUNCTIONS: dict[str, tuple[Made, list[Kind]]] = {
    **{o.name.lower(): (of(o), [F]) for o in (f.ERF, f.SOFTPLUS, f.MISH, f.SINH, f.COSH)},
    "gelu": (of(m.GELU, approximate=True), [F]), "gelu_exact": (of(m.GELU, approximate=False), [F]),
    "trunc_mod": (of(f.TRUNC_MOD), [F, F]), "trunc_mod_int": (of(f.TRUNC_MOD), [I, I]),
    "bitwise_not_int": (of(f.BITWISE_NOT), [I]),
}
#: Cases that need a host operation, by the targets (as their indices in TARGETS) on which they do.
FUNCTIONS_HOSTED = {name: where for where, names in {
    (0, 1): "sinh cosh", (0, 1, 2): "mish softplus", (0, 1, 2, 3, 4): "trunc_mod_int bitwise_not_int",
    tuple(range(8)): "trunc_mod",
}.items() for name in names.split()}
