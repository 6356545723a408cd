"""TFLite files: a checked reader on the schema of the `tflite` package, and an importer per operator."""
from .package import lazily

lazily("tflite")
