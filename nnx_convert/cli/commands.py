"""The commands and their options, and how they end. NumPy and all that needs it is imported by the work itself."""
from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn, TypeVar

import click

from .. import __version__
from ..errors import ExitCode, NnxError, Notice, RunError, UsageError
from .screen import complain, quiet_stdout

Function = TypeVar("Function", bound=Callable[..., Any])
#: What a command comes to: it is done outside of click, which has ends of its own for some faults.
Work = Callable[[], ExitCode | None]
LEVELS = ("27", "28", "29", "30", "31", "fl6", "fl7", "fl8")
#: What a shell calls the end by Ctrl-C.
INTERRUPTED = 130
#: What `bench` can time beside this package.
ENGINES = ("litert", "onnxruntime", "openvino")
#: Those of `runtime.backends`, which would have NumPy loaded before there is anything to compute.
BACKENDS, ROUNDINGS = ("auto", "numpy", "native"), ("reference", "fast")
EXAMPLES = """\b
Examples:
  nnx-convert bench model.tflite --vs litert
  nnx-convert bench model.onnx --backend native --backend numpy --threads 1
  nnx-convert bench model.tflite --per-op
  nnx-convert bench model.onnx --vs onnxruntime --shape x=1,3,224,224 --report json

"""
EXITS = "\b\nExit codes:\n" + "\n".join(f"  {int(c)}  {c.meaning}" for c in ExitCode)


class Commands(click.Group):
    """A group with a command that need not be named: the conversion."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Name the command where it is left out."""
        own = args and (args[0] in self.commands or args[0] in ("--help", "--version"))
        return super().parse_args(ctx, args if own else ["convert", *args])

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The conversion's help, then the other commands."""
        inner = self.commands["convert"]
        inner.format_help(click.Context(inner, info_name=ctx.info_name), formatter)
        with formatter.section("Commands"):
            formatter.write_dl([("convert MODEL", "what `nnx-convert MODEL` does"),
                                ("run FILE", "run a .tflite, .onnx or .nnx file"),
                                ("bench FILE", "time it, beside LiteRT, ONNX Runtime and OpenVINO"),
                                ("ops [NAME]", "what the op table says of an operation, or all of them")])


def named_sizes(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """NAME=1,224,224,3, repeated, as sizes by name."""
    found = {}
    for value in values:
        name, _, sizes = value.rpartition("=")
        parts = sizes.split(",") if sizes else []
        if not name or not all(p.isdecimal() and len(p) < 10 for p in parts):
            raise click.BadParameter(f"{value!r} is not NAME=1,224,224,3", ctx, param)
        found[name] = tuple(map(int, parts))
    return found


def named_files(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    """NAME=x.npy, repeated, as paths by name."""
    found = {}
    for value in values:
        name, _, path = value.rpartition("=")
        if not name or not path:
            raise click.BadParameter(f"{value!r} is not NAME=x.npy", ctx, param)
        found[name] = path
    return found


def engines(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    """litert,onnxruntime as names, each once."""
    names = tuple(dict.fromkeys(filter(None, (value or "").split(","))))
    if unknown := [n for n in names if n not in ENGINES]:
        raise click.BadParameter(f"there is no engine {', '.join(unknown)}: {', '.join(ENGINES)}", ctx, param)
    return names


def shared(command: Function) -> Function:
    """Options that both commands have."""
    report = click.option("--report", type=click.Choice(("text", "json")), default="text", show_default=True,
                          help="What stdout gets: a screen, or the same facts as JSON.")
    shape = click.option("--shape", "shapes", multiple=True, callback=named_sizes, metavar="NAME=1,224,224,3",
                         help="Sizes of an input that the file leaves open; repeatable.")
    return report(shape(command))


def rounding(command: Function) -> Function:
    """The option of the commands that run a model."""
    option = click.option(
        "--rounding", type=click.Choice(ROUNDINGS), default="reference", show_default=True,
        help="How native code rounds products of 8-bit numbers: as operations are defined, or as XNNPACK does.")
    return option(command)


@click.group(cls=Commands, epilog=EXITS)
@click.version_option(__version__, prog_name="nnx-convert")
def commands() -> None:
    """Compiles TFLite and ONNX models to NNAPI, NNAPI-EX and DENSIFY."""


@commands.command(epilog=EXITS)
@click.argument("model")
@click.option("-o", "--output", metavar="OUT.nnx",
              help="Where to write; without it, MODEL's name with .nnx, in the current folder.")
@click.option("--target", type=click.Choice(LEVELS), default="30", show_default=True,
              help="The NNAPI feature level of the device.")
@click.option("--no-ex", is_flag=True, help="The device has no NNAPI-EX operations.")
@click.option("--no-experimental", is_flag=True, help="The device has no DENSIFY.")
@click.option("--sparse", type=click.Choice(("keep", "fold")), default="keep", show_default=True,
              help="Sparse weights: kept compressed where the device has DENSIFY, or made dense.")
@click.option("--hybrid", type=click.Choice(("exact", "float")), default="exact", show_default=True,
              help="Float activations beside int8 weights: exactly as in TFLite, on the host, or the device's float "
                   "operations on dequantised weights. --strict takes the latter.")
@click.option("--int64", type=click.Choice(("exact", "narrow")), default="exact", show_default=True,
              help="64-bit integers: in 32 bits where that is proven to be the same and on the host elsewhere, or in "
                   "32 bits wherever the device has an operation. --strict takes the latter.")
@click.option("--qdq", type=click.Choice(("codes", "floats")), default="codes", show_default=True,
              help="What ONNX dequantises, computes and quantises: one operation on codes, rounded as NNAPI does, or "
                   "floats between codes, rounded as ONNX says.")
@click.option("--strict", is_flag=True, help="Refuse what the device does not take; else it runs on the host.")
@click.option("--signature", metavar="NAME", help="The entry point to convert, where it is not the main one.")
@shared
def convert(**options: Any) -> Work:
    """Compile MODEL (a .tflite or .onnx file) to NNAPI, say what became of it, write it as a .nnx file.

    Of a MODEL that is a .nnx file it says the same and writes nothing, unless -o is given; options that a
    conversion follows are for source files. A file called like a command is given as ./run.
    """
    from .converting import convert_file
    return partial(convert_file, **options)


@commands.command(epilog=EXITS)
@click.argument("file")
@click.option("--input", "given", multiple=True, callback=named_files, metavar="NAME=x.npy",
              help="One input; repeatable.")
@click.option("--inputs", "archive", metavar="ALL.npz", help="Inputs by their names, or as in0, in1 and so on.")
@click.option("--random", "seed", type=click.IntRange(0), metavar="SEED",
              help="Draw the inputs that are not given: floats normal, integers of 8 and 16 bits over all of their "
                   "range, wider ones from 0 to 9. One seed, one set of inputs.")
@click.option("--output", metavar="OUT.npz", help="Write the outputs by their names.")
@click.option("--expect", metavar="GOLDEN.npz",
              help="Compare the outputs, by their names or as ref_out0 or out0; ends with 1 where they differ.")
@click.option("--atol", type=click.FloatRange(0), help="How far a number may be off. [floats 1e-4, integers 0]")
@click.option("--rtol", type=click.FloatRange(0), help="The same, in parts of the expected number.")
@click.option("--backend", type=click.Choice(BACKENDS), default="auto", show_default=True,
              help="What computes it.")
@rounding
@click.option("--threads", type=click.IntRange(1), metavar="N",
              help="Threads of a run, where it is long enough for several. [all cores]")
@click.option("--signature", metavar="NAME",
              help="The entry point to run, where it is not the main one. Inputs and outputs have the names it gives "
                   "them, --shape those of the file.")
@shared
def run(**options: Any) -> Work:
    """Run a .tflite, .onnx or .nnx FILE on this machine."""
    from .running import run_file
    return partial(run_file, **options)


@commands.command(epilog=EXAMPLES + EXITS)
@click.argument("file")
@click.option("--backend", "backends", multiple=True, type=click.Choice(BACKENDS),
              help="What computes it; repeatable, the first is the one that others are compared with. [auto]")
@rounding
@click.option("--vs", "peers", callback=engines, metavar="litert,onnxruntime,openvino",
              help="Engines to run in turn with it; LiteRT reads .tflite files, ONNX Runtime .onnx files, OpenVINO "
                   "both.")
@click.option("--threads", type=click.IntRange(1), metavar="N", help="Threads of every engine. [all cores]")
@click.option("--runs", type=click.IntRange(1), default=30, show_default=True, metavar="N",
              help="Runs that are timed, after a few that are not.")
@click.option("--inputs", "archive", metavar="ALL.npz", help="Inputs by their names, or as in0, in1 and so on.")
@click.option("--random", "seed", type=click.IntRange(0), default=0, show_default=True, metavar="SEED",
              help="Draw the inputs that are not given, as `run` does.")
@click.option("--per-op", is_flag=True, help="Where the time of the first backend goes, step by step.")
@click.option("--json", "as_json", is_flag=True, help="The same as --report json.")
@shared
def bench(**options: Any) -> Work:
    """Time runs of a .tflite, .onnx or .nnx FILE: median and least, copies of inputs and outputs included."""
    from .timing import bench_file
    if options.pop("as_json"):
        options["report"] = "json"
    return partial(bench_file, **options)


@commands.command(epilog=EXITS)
@click.argument("name", required=False)
def ops(name: str | None) -> Work:
    """Print the op table's row of NAME: operands, types with their levels, rules, twin. Without it, a line each.

    `T@29`: from feature level 29. `?`: may be left out, `= v`: left off the end, `...`: repeats.
    """
    from .listing import show_ops
    return partial(show_ops, name)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command and end the process: a fault is one line on stderr and an exit code of `ExitCode`."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if not os.environ.get("NNX_DEBUG"):
        import warnings
        warnings.simplefilter("ignore")            # what NumPy warns of is in the numbers; stderr is for faults
        warnings.simplefilter("always", Notice)
        warnings.showwarning = lambda message, *_, **__: complain(str(message))  # type: ignore[assignment]
    if args is None:                               # this process ends here: before cycles add up,
        gc.disable()
    code = ended(None if args is None else list(args))
    if args is None:                               # and without one more search for them
        gc.freeze()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        quiet_stdout()
    sys.exit(code)


def ended(args: list[str] | None) -> int:
    """Run the command; the exit code."""
    try:
        found: Work | int | None = commands.main(args, prog_name="nnx-convert", standalone_mode=False)
        return int((found() if callable(found) else found) or ExitCode.GOOD)
    except BrokenPipeError:
        quiet_stdout()                             # who reads has seen enough
        return ExitCode.GOOD
    except (KeyboardInterrupt, click.Abort):
        complain("interrupted")
        return INTERRUPTED
    except Exception as error:
        return failed(error)


def failed(error: Exception) -> int:
    """Say what went wrong; the exit code."""
    if isinstance(error, NnxError):
        return complain(error)
    if isinstance(error, click.ClickException):
        return complain(UsageError(error.format_message(), hint="see nnx-convert --help"))
    if isinstance(error, MemoryError):
        return complain(RunError("out of memory"))
    if os.environ.get("NNX_DEBUG"):
        raise error
    return complain(f"internal error, please report it: {type(error).__name__}: {error} (NNX_DEBUG=1 shows where)")
