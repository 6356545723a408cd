"""THE KERNELS: one module per family of the op table, whole-array NumPy. Importing it fills `kernel.KERNELS`."""
# ruff: noqa: F401
from . import control
from . import conv
from . import convert
from . import detect
from . import elementwise
from . import ex
from . import gather
from . import host
from . import image
from . import norm
from . import reduce
from . import rnn
from . import shape
from . import sparse
