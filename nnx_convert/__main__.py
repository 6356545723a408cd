"""`python -m nnx_convert` is `nnx-convert`."""
from .cli import main

main()
