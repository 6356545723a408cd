"""docs/limits.md, its table written from resources.py.

`python -m nnx_convert.emit.limits_page` writes it.
"""
from __future__ import annotations

from pathlib import Path

from ..resources import table

PAGE = Path("docs/limits.md")
HEAD = """# What a file may cost

Written by `python -m nnx_convert.emit.limits_page`; do not edit.

Nothing in a model file is trusted (docs/security.md). What it asks for is compared with these limits before it is
allocated, and while it is computed. A file beyond one of them is the error NNX104 (exit code 3), a conversion or a run
NNX403 (exit code 5); both name the limit. Exceptions: what a conversion may compute ahead is left to the run instead,
and graphs nested too deep for this program cannot be allowed by any value of `depth`.

| Limit | Default | What it limits |
|---|---|---|
"""
TAIL = """
The memory there is: the machine's, what the process's control group may hold, what `ulimit` leaves it, the least of
these. Units are K, M, G, T, of 1024 each; seconds may have a fraction.

Every command takes limits, more than one option counts each:

```bash
nnx-convert run models/digits_cnn.tflite --random 1 --limit seconds=30 --limit total_bytes=512M
```

`NNX_LIMITS=seconds=30,total_bytes=512M` in the environment sets them for a process, options and `limited` go before it:

```python
import nnx_convert as nnx

with nnx.limited(seconds=30, total_bytes=512 << 20):
    compiled = nnx.compile("models/digits_cnn.tflite")     # runs under these limits wherever it is called
```
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(f"| `{name}` | {default} | {text} |\n" for name, default, text in table()) + TAIL


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
