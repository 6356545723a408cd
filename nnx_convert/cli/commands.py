"""The commands: their arguments, their options, their help. NumPy and all that needs it is imported by their work."""
from __future__ import annotations

import os
import sys
from functools import partial
from typing import Any

import click

from .. import __version__
from . import screen
from .group import Commands
from .options import (
    BACKENDS, MODEL, Work, coded, engines, entered, examples, named_files, profiled, reported, reports, rounded,
    sections, shaped, targeted, targeted_by, threaded, tolerant, traced)


@click.group(cls=Commands, context_settings={"max_content_width": 100})
@click.version_option(__version__, prog_name=screen.COMMAND)
def commands() -> None:
    """Compiles TFLite and ONNX models to NNAPI, NNAPI-EX and DENSIFY."""


@commands.command(epilog=examples("model.tflite", "model.tflite --emit html:model.html --emit ndk:device",
                                  "model.tflite --emit object:build --triple aarch64-linux-android",
                                  "model.onnx -o small.nnx --target 29 --strict --json"),
                  short_help="what `nnx-convert MODEL` does")
@click.argument("model", type=MODEL)
@click.option("-o", "--output", metavar="OUT.nnx", type=MODEL,
              help="Where to write; without it, MODEL's name with .nnx, in the current folder.")
@targeted
@click.option("--emit", "emits", multiple=True, metavar="KIND:PATH",
              help="Write as well: html:FILE, a page (graph, device's verdict, memory, times); json:FILE, the whole "
                   "model as JSON (docs/model.schema.json); ndk:DIR, C++ that builds and runs it on a device through "
                   "NNAPI, with goldens and a check; object:DIR, native code for an app.")
@click.option("--strict", is_flag=True, help="Refuse what the device does not take; else it runs on the host.")
@traced
@coded
@entered
@shaped
@reports
def convert(**options: Any) -> Work:
    """Compile MODEL (a .tflite or .onnx file) to NNAPI, say what became of it, write it as a .nnx file.

    Of a MODEL that is a .nnx file it says the same and writes nothing, unless -o is given; options that a
    conversion follows are for source files. A file called like a command is given as ./run.
    """
    from .converting import convert_file
    return partial(convert_file, **targeted_by(options))


@commands.command(epilog=examples("run model.tflite --random 1", "run model.nnx --input image=cat.npy --output out.npz",
                                  "run model.nnx --random 1 --expect golden.npz --atol 1e-5"),
                  short_help="run a .tflite, .onnx or .nnx file")
@click.argument("file", type=MODEL)
@click.option("--input", "given", multiple=True, callback=named_files, metavar="NAME=x.npy",
              help="One input; repeatable.")
@click.option("--inputs", "archive", metavar="ALL.npz", type=MODEL,
              help="Inputs by their names, or as in0, in1 and so on.")
@click.option("--random", "seed", type=click.IntRange(0), metavar="SEED",
              help="Draw the inputs that are not given: floats normal, integers of 8 and 16 bits over all of their "
                   "range, wider ones from 0 to 9. One seed, one set of inputs.")
@click.option("--tap", "taps", multiple=True, metavar="TENSOR",
              help="Give this tensor of the source file beside the outputs; repeatable. Those of a .nnx file are "
                   "called as `inspect --tensors` does, %4.")
@click.option("--output", metavar="OUT.npz", type=MODEL, help="Write the outputs by their names.")
@click.option("--expect", metavar="GOLDEN.npz", type=MODEL,
              help="Compare the outputs, by their names or as ref_out0 or out0; ends with 1 where they differ.")
@tolerant
@click.option("--backend", type=click.Choice(BACKENDS), default="auto", show_default=True,
              help="What computes it.")
@rounded
@threaded("Threads of a run, where it is long enough for several. [all cores]")
@click.option("--signature", metavar="NAME",
              help="The entry point to run, where it is not the main one. Inputs and outputs have the names it gives "
                   "them, --shape those of the file.")
@profiled
@shaped
@reports
def run(**options: Any) -> Work:
    """Run a .tflite, .onnx or .nnx FILE on this machine."""
    from .running import run_file
    return partial(run_file, **options)


@commands.command(epilog=examples("bench model.tflite --vs litert",
                                  "bench model.tflite --per-op --profile m.trace.json",
                                  "bench model.onnx --backend native --backend numpy --threads 1",
                                  "bench model.onnx --vs onnxruntime --shape x=1,3,224,224 --json"),
                  short_help="time it, beside LiteRT, ONNX Runtime and OpenVINO")
@click.argument("file", type=MODEL)
@click.option("--backend", "backends", multiple=True, type=click.Choice(BACKENDS),
              help="What computes it; repeatable, the first is the one that others are compared with. [auto]")
@rounded
@click.option("--vs", "peers", callback=engines, metavar="litert,onnxruntime,openvino",
              help="Engines to run in turn with it; LiteRT reads .tflite files, ONNX Runtime .onnx files, OpenVINO "
                   "both.")
@threaded("Threads of every engine. [all cores]")
@click.option("--runs", type=click.IntRange(1), default=30, show_default=True, metavar="N",
              help="Runs that are timed, after a few that are not.")
@click.option("--inputs", "archive", metavar="ALL.npz", type=MODEL,
              help="Inputs by their names, or as in0, in1 and so on.")
@click.option("--random", "seed", type=click.IntRange(0), default=0, show_default=True, metavar="SEED",
              help="Draw the inputs that are not given, as `run` does.")
@click.option("--per-op", is_flag=True, help="Where the time of the first backend goes, step by step.")
@profiled
@shaped
@reports
def bench(**options: Any) -> Work:
    """Time runs of a .tflite, .onnx or .nnx FILE: median and least, copies of inputs and outputs included."""
    from .timing import bench_file
    return partial(bench_file, **options)


@commands.command(epilog=examples("check model.tflite", 'check model.onnx --target 29 --fail-on "host,partitions>1"',
                                  "check model.tflite --target npu.toml --trace-passes",
                                  "check model.tflite --all-targets --json"),
                  short_help="what a device takes, what it does not, why, what to change")
@click.argument("model", type=MODEL)
@targeted
@click.option("--all-targets", "every", is_flag=True, help="Beside it a line for each feature level there is.")
@click.option("--fail-on", default="", metavar="CONDITIONS",
              help='End with 4 where one is met: host (an operation is for the host), refused (that, or what holds '
                   'such), "level>29" (what the others take), "partitions>1" (pieces for a driver); separated by '
                   "commas, in quotes, as a shell reads > itself.")
@traced
@entered
@shaped
@reported
def check(**options: Any) -> Work:
    """Say of each operation of MODEL whether the device takes it, from which level on, or which rule it breaks.

    MODEL is a .tflite, .onnx or .nnx file. Nothing is written. The last line has the figures of --fail-on.
    """
    from .checking import check_file
    return partial(check_file, **targeted_by(options))


@commands.command(epilog=examples("inspect model.tflite", "inspect model.tflite --sparsity --quant",
                                  "inspect model.nnx --memory --json"),
                  short_help="what a file holds: operations, tensors, grids, memory")
@click.argument("file", type=MODEL)
@sections
@entered
@shaped
@reported
def inspect(**options: Any) -> Work:
    """Show what a .tflite, .onnx or .nnx FILE holds: in short, or the tables asked for.

    A source file is shown as it is, before anything is lowered.
    """
    from .inspecting import inspect_file
    return partial(inspect_file, **options)


@commands.command(epilog=examples("verify model.tflite --per-op", "verify model.onnx --against onnxruntime --random 1",
                                  "verify model.tflite --against golden.npz --junit verify.xml",
                                  "verify small.nnx --against model.tflite --atol 0.01"),
                  short_help="compare it with LiteRT, ONNX Runtime, an archive or another model")
@click.argument("model", type=MODEL)
@click.option("--against", default="", metavar="WHAT", type=MODEL,
              help="litert, onnxruntime, an archive of outputs (.npz) or another model's file. [the format's runtime]")
@click.option("--input", "given", multiple=True, callback=named_files, metavar="NAME=x.npy",
              help="One input; repeatable.")
@click.option("--inputs", "archive", metavar="ALL.npz", type=MODEL,
              help="Inputs by their names, or as in0, in1 and so on; those of further runs as s1_in0, s2_in0. "
                   "[those of the archive of --against]")
@click.option("--random", "seed", type=click.IntRange(0), metavar="SEED",
              help="Draw the inputs that are not given, as `run` does. [0 where nothing is given]")
@click.option("--runs", "count", type=click.IntRange(1), metavar="N",
              help="Runs in a row. [1; of a model that keeps a state, 3; of an archive, all it has]")
@click.option("--feed", multiple=True, callback=named_files, metavar="INPUT=OUTPUT",
              help="An input that is an output of the run before; repeatable.")
@click.option("--per-op", is_flag=True,
              help="Compare every tensor, each operation fed with the reference's own inputs, and name the first that "
                   "diverges.")
@tolerant
@click.option("--steps", type=click.IntRange(0), metavar="N",
              help="How many steps of its grid a quantised number may be off. [TFLite 0; ONNX 1, outputs 2]")
@click.option("--backend", type=click.Choice(BACKENDS), default="auto", show_default=True,
              help="What computes it; with auto, single operations are computed in NumPy.")
@threaded("Threads of a run, where it is long enough for several. [all cores]")
@click.option("--junit", metavar="OUT.xml", type=MODEL, help="Write the verdict as JUnit's XML.")
@targeted
@shaped
@reported
def verify(**options: Any) -> Work:
    """Run the same inputs through MODEL and what it is compared with, and say how far they are apart.

    MODEL is a .tflite, .onnx or .nnx file. Ends with 1 where an output or, with --per-op, an operation diverges.
    """
    from .verifying import verify_file
    return partial(verify_file, **targeted_by(options))


@commands.command(epilog=examples("diff model.tflite model_int8.tflite",
                                  "diff old.nnx new.nnx --fail-on ops,macs+5%,size+5%"),
                  short_help="what differs between two files")
@click.argument("before", type=MODEL)
@click.argument("after", type=MODEL)
@click.option("--fail-on", default="", metavar="CONDITIONS",
              help="End with 1 where one is met: ops, dtype, shape, scale (any change), size+5%, weights+5%, macs+5%, "
                   "arena+5%, density+5% (a growth of more); separated by commas.")
@shaped
@reported
def diff(**options: Any) -> Work:
    """Say what differs between the files BEFORE and AFTER: operations, types, shapes, grids, bytes, work, sparsity.

    Of files of two formats what they become is compared.
    """
    from .differing import diff_files
    return partial(diff_files, **options)


@commands.command(epilog=examples("ci nnx.toml", "ci nnx.toml --jobs 4 --junit out.xml", "ci nnx.toml --only 'digits*'",
                                  "ci nnx.toml --dask tcp://scheduler:8786 --json"),
                  short_help="check, verify and measure many models, from one file")
@click.argument("file", type=MODEL)
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Entries at a time. [all cores]")
@click.option("--only", multiple=True, metavar="NAME", help="The entries of this name, or pattern; repeatable.")
@click.option("--junit", "junit_to", metavar="OUT.xml", type=MODEL, help="Write what came of it as JUnit's XML.")
@click.option("--dask", metavar="ADDRESS",
              help="Run the entries on the Dask cluster with this scheduler, whose workers see the same files.")
@reported
def ci(**options: Any) -> Work:
    """Do what FILE, a TOML file of models, targets, references and budgets, asks for (docs/ci.md).

    Each entry has a process of its own and a time limit. Ends with 4 where a target does not take what it should, else
    with 1 where numbers differ or a budget is exceeded; before both with 5, 3 or 2 where an entry could not be judged.
    """
    from .integrating import run_entries
    return partial(run_entries, **options)


@commands.command(epilog=examples("ops", "ops CONV_2D", "ops CONV_2D --json"),
                  short_help="what the op table says of an operation, or all of them")
@click.argument("name", required=False)
@reported
def ops(**options: Any) -> Work:
    """Print the op table's row of NAME: operands, types with their levels, rules, twin. Without it, a line each.

    `T@29`: from feature level 29. `?`: may be left out, `= v`: left off the end, `...`: repeats.
    """
    from .listing import show_ops
    return partial(show_ops, **options)


@commands.command("record-lib", epilog=examples("record-lib recorder"),
                  short_help="NNAPI's C API for Linux, which records what a program builds")
@click.argument("folder", metavar="DIR", type=MODEL)
@reported
def record_lib(**options: Any) -> Work:
    """Write the sources of an NNAPI for Linux to DIR, with a CMakeLists.txt, a README and an example.

    A C or C++ program linked with it leaves each model it compiles as a .nnx file, and its runs are those of this
    executor.
    """
    from .recording import write_library
    return partial(write_library, **options)


@commands.command("record-run", epilog=examples("record-run nnx-record/0"), hidden=True)
@click.argument("folder", type=MODEL)
@reported
def record_run(**options: Any) -> Work:
    """What the recording library calls with a record's folder: make its model.nnx, or run what it asks for."""
    from .recording import run_record
    return partial(run_record, **options)


@commands.command(epilog=examples("completion bash >> ~/.bashrc", "completion fish > "
                                  "~/.config/fish/completions/nnx-convert.fish"),
                  short_help="what makes a shell complete this command")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")), required=False)
def completion(shell: str | None) -> Work:
    """Print the lines that make SHELL complete commands, options and files; without it, those of $SHELL."""
    from .completing import show_completion
    return partial(show_completion, commands, shell or os.path.basename(os.environ.get("SHELL", "")), sys.stdout)
