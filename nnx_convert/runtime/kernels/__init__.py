"""THE KERNELS: one module per family of the op table, whole-array NumPy; see `kernel.kernel_of`."""
