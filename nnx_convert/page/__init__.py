"""A model as one self-contained page: what there is of it, its graph, its memory and the verdict of a device."""
from __future__ import annotations

from .build import page as page

__all__ = ["page"]
