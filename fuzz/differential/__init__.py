"""Random valid models, run by the reference runtime of their format and by this package's two backends.

A model is drawn from a format and a seed alone, so that a seed is a recipe: `models.model("tflite", 7)`. The command is
`python -m fuzz.differential --count 1000 --format tflite`; `docs/reliability.md` has what it found.
"""
from .. import reach

reach("models")                                  # where TFLite files are written
