"""Products with constant matrices whose axes stay apart, so that a layout may order them."""
from __future__ import annotations

from ..kinds import Act, Positive, T
from ..schema import Rule, composite
from ..types import product
from .host import ALL, AnyT


@composite(ALL, Rule("x has at least `flat` axes", lambda x, flat: x.rank >= flat),
           Rule("w has the axes of b, then as many elements as the last `flat` axes of x", lambda x, w, b, flat:
                w.shape[:b.rank] == b.shape and product(w.shape[b.rank:]) == product(x.shape[x.rank - flat:])))
def LINEAR(x: T, w: AnyT, b: AnyT, flat: Positive = 1, act: Act = 0) -> T:
    """act(x @ w.T + b): the last `flat` axes of x are summed over with those of w, the axes of b take their place."""
    return x.free((*x.shape[:x.rank - flat], *b.shape))
