"""A model of 3 GB: its weights stay in their file while it is converted, and a part of it while that is written."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from onnx import TensorProto, helper

#: Of 256 MB each, all and as many as are written: that reads them, and a hole in a file takes long to read.
LAYERS, SIDE, WRITTEN = 12, 8192, 2
#: What a process may allocate beside its mapped files, once all that it needs is imported.
ROOM = 300 << 20
PROGRAM = """
import re, resource, sys, numpy, nnx_convert
import nnx_convert.frontends.onnx.importer, nnx_convert.lowering.pipeline, nnx_convert.runtime.bind
data = int(re.search(r"VmData:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) << 10
limit = data + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
model = nnx_convert.convert(sys.argv[1])
if sys.argv[3:]:
    model.save(sys.argv[3])
print(sum(o.value.nbytes for o in model.operands if getattr(o.value, "nbytes", 0)))
"""


def weights(i: int) -> TensorProto:
    """One of the large matrices, all in a single file."""
    made = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[SIDE, SIDE], data_location=TensorProto.EXTERNAL)
    size = 4 * SIDE * SIDE
    for key, value in (("location", "w.bin"), ("offset", i * size), ("length", size)):
        made.external_data.add(key=key, value=str(value))
    return made


@pytest.mark.parametrize(("layers", "more"), [(LAYERS, []), (WRITTEN, ["/dev/null"])], ids=["converted", "written"])
def test_a_model_larger_than_its_memory(tmp_path: Path, layers: int, more: list[str]) -> None:
    nodes = [helper.make_node("Gemm", [f"t{i}", f"w{i}"], [f"t{i + 1}"], transB=1) for i in range(layers)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, SIDE)) for name in ("t0", f"t{layers}")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [weights(i) for i in range(layers)])
    (tmp_path / "m.onnx").write_bytes(helper.make_model(graph).SerializeToString())
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(4 * LAYERS * SIDE * SIDE)
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path / "m.onnx"), str(ROOM), *more],
                          capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr[-2000:]
    assert int(done.stdout) >= 4 * layers * SIDE * SIDE > ROOM
