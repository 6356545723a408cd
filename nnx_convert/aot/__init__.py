"""A model as a library for C: native code, weights, a header and an example, for an app that has nothing else."""
from __future__ import annotations

from .export import Golden as Golden, export as export
from .machines import FEATURES as FEATURES, TRIPLES as TRIPLES, machine as machine

__all__ = ["FEATURES", "TRIPLES", "Golden", "export", "machine"]
