"""Hostile files made by the thousand: atheris mutates real models, knowing what a model is, and watches our code run.

    python -m fuzz --seconds 60 [TARGET...]

`targets` says what is run and what counts as a fault, `edits` how models of each format are changed, `seeds` what is
changed, `recipes` how a finding is kept without the model it was made from; `campaign` runs processes under limits.
"""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def reach(*folders: str) -> None:
    """Let modules in folders of this repository that are no packages be imported."""
    sys.path += [path for folder in folders if (path := str(ROOT / folder)) not in sys.path]
