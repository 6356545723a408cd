"""Random ONNX models."""
