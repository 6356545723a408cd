"""THE KERNELS: one module per family of the op table, whole-array NumPy. Importing it fills `kernel.KERNELS`."""
from . import elementwise
