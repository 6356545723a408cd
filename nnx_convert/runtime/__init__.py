"""Running a Model: bind, plan, compile, run; kernels by operation."""
