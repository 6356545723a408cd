"""How far counts may be from their odds: Pearson's chi-square, with a bound that chance exceeds once in a million."""
from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
#: The normal quantile of 1 - 1e-6.
RARE = 4.7534
#: Classes expected less often than this are counted together, as the approximation wants.
FEW = 5.0


def bound(freedom: int) -> float:
    """What a chi-square of so many degrees of freedom exceeds once in 10^6 (Wilson and Hilferty, 1931)."""
    spread = 2 / (9 * freedom)
    return float(freedom * (1 - spread + RARE * spread ** 0.5) ** 3)


def unlikely(counts: Array, odds: Array) -> str:
    """Why counts are not draws with these odds; "" where they may be."""
    wanted = odds * counts.sum() / odds.sum()
    if counts[wanted == 0].any():
        return "a class without odds is drawn"
    often = wanted >= FEW
    seen, hoped = (np.append(v[often], v[~often].sum()) for v in (counts, wanted))
    seen, hoped = seen[hoped > 0], hoped[hoped > 0]
    statistic, limit = float(((seen - hoped) ** 2 / hoped).sum()), bound(max(len(seen) - 1, 1))
    return "" if statistic <= limit else f"chi-square {statistic:.1f} exceeds {limit:.1f}"
