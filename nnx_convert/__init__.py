"""Compiles TFLite and ONNX models to NNAPI, NNAPI-EX and DENSIFY."""
