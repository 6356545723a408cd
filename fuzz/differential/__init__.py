"""Random valid models, run by the reference runtime of their format and by this package's two backends.

A model is drawn from a format and a seed alone, so that a seed is a recipe: `models.model("tflite", 7)`. The command is
`python -m fuzz.differential --count 1000 --format tflite`; `docs/reliability.md` has what it found.
"""
import sys
from pathlib import Path

#: Where TFLite files are written, which is no package.
MODELS = str(Path(__file__).resolve().parents[2] / "models")
if MODELS not in sys.path:
    sys.path.append(MODELS)
