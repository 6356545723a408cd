"""NNAPI's C API as a library for Linux that records what a program builds, and what reads and runs its records."""
from __future__ import annotations

from .reading import read_record as read_record
from .running import hand_over as hand_over
