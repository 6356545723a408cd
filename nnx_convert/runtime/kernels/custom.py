"""Operators that a user of this library brings along."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import RunError
from ...ops import custom
from ...types import Array, Tensor
from ..kernel import Compute, Site, sized


@sized(custom.CUSTOM)
def CUSTOM(site: Site, name: Tensor, options: Tensor | None, xs: tuple[Tensor | None, ...], count: int) -> Compute:
    """What the user's function gives must have the types that were inferred; their inputs cannot be written."""
    fn, data, types = custom.custom_op(name).kernel, custom.bytes_of(options), [t.type.dtype for t in site.outs]

    def run(_name: Array, _options: Array | None, xs: Sequence[Array | None]) -> list[Array]:
        try:
            found = fn(data, *map(_readonly, xs))
        except Exception as error:               # of the user's own function
            raise RunError(f"its kernel raises {type(error).__name__}: {error}") from error
        arrays = [np.asarray(a) for a in (found if isinstance(found, list | tuple) else [found])]
        if len(arrays) != count or any(a.dtype != t for a, t in zip(arrays, types, strict=True)):
            raise ValueError(f"its kernel gives {', '.join(str(a.dtype) for a in arrays)}, "
                             f"not {', '.join(map(str, types))}")
        return arrays
    return run


def _readonly(x: Array | None) -> Array | None:
    if x is None:
        return None
    view = x.view()
    view.flags.writeable = False
    return view
