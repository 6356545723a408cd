"""Random TFLite models."""
