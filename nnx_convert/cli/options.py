"""The options that commands share, and how their texts become values."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from .. import codes, resources
from ..codes import spelt
from ..errors import ExitCode, UsageError
from ..peers import PEERS
from ..resources import Limits, limited, limits
from ..runtime.backends import BACKENDS as BACKENDS, ROUNDINGS as ROUNDINGS  # noqa: PLC0414  (handed on)
from . import screen

Function = TypeVar("Function", bound=Callable[..., Any])
#: What a command comes to: it is done outside of click, which has ends of its own for some faults.
Work = Callable[[], ExitCode | None]
LEVELS = tuple(map(spelt, codes.LEVELS))
#: What a model can be run by beside this package.
ENGINES = tuple(PEERS)
#: Those of `aot`, which would have NumPy loaded before there is anything to compute.
TRIPLES = ("x86_64-linux-gnu", "aarch64-linux-gnu", "aarch64-linux-android")
FEATURES = ("baseline", "avx2", "avx512", "neon", "dotprod", "host")
#: What a file of a model is called: a shell completes the paths of such.
MODEL = click.Path()


class Device(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic from click 8.3 on
    """A feature level, or the path of a TOML file that describes a device."""

    name = "device"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text itself, where it is one of these."""
        level = codes.level_of(value) if value.removeprefix("fl").isdecimal() else None
        if level not in codes.LEVELS and not value.endswith(".toml"):
            self.fail(f"{value!r} is neither a level ({', '.join(LEVELS)}) nor a .toml file", param, ctx)
        return value

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """What help shows for it."""
        return f"[{'|'.join(LEVELS)}|FILE.toml]"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The levels, and files."""
        levels = [CompletionItem(n) for n in LEVELS if n.startswith(incomplete)]
        return [*levels, *MODEL.shell_complete(ctx, param, incomplete)]


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


def volume(ctx: click.Context, param: click.Parameter, given: bool) -> None:
    """How much the command says, from --quiet or --verbose."""
    if given:
        screen.volume.set(screen.Volume.QUIET if param.name == "quiet" else screen.Volume.VERBOSE)


def named_limits(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> Limits:
    """NAME=VALUE, repeated, beside the limits that hold already."""
    try:
        return limits().with_(**resources.spelt(",".join(values)))
    except UsageError as error:
        raise click.BadParameter(error.said, ctx, param) from error


def bounded(command: Function) -> Function:
    """The limits of what a command reads and runs."""
    @wraps(command)
    def within(*, bounds: Limits, **options: Any) -> Work:
        with limited(bounds):
            work = command(**options)

        def done() -> ExitCode | None:
            with limited(bounds):
                found: ExitCode | None = work() if callable(work) else work
                return found
        return done
    option = click.option("--limit", "bounds", multiple=True, callback=named_limits, metavar="NAME=VALUE",
                          help="What a file may cost, as in seconds=30 or total_bytes=2G; repeatable "
                               "(docs/limits.md).")
    return cast(Function, option(within))


def reported(command: Function) -> Function:
    """The options of what is said, and how, and of what may be spent: every command has them."""
    command = bounded(command)
    for option in (
            click.option("--verbose", is_flag=True, expose_value=False, callback=volume,
                         help="Say all there is, and on stderr what is done and how long it takes."),
            click.option("--quiet", is_flag=True, expose_value=False, callback=volume,
                         help="Say faults and results only: no progress, no notices."),
            click.option("--json", "report", flag_value="json", default="text",
                         help="Print one JSON object on stdout and nothing else (docs/report.md).")):
        command = option(command)
    return command


def reports(command: Function) -> Function:
    """The same, with the older spelling of --json beside it."""
    option = click.option("--report", "report", type=click.Choice(("text", "json")), default="text",
                          help="What stdout gets: a screen, or what --json prints.")
    return option(reported(command))


def shaped(command: Function) -> Function:
    """The sizes of inputs that a file leaves open."""
    option = click.option("--shape", "shapes", multiple=True, callback=named_sizes, metavar="NAME=1,224,224,3",
                          help="Sizes of an input that the file leaves open; repeatable.")
    return option(command)


def rounded(command: Function) -> Function:
    """The rounding, of the commands that run a model."""
    option = click.option(
        "--rounding", type=click.Choice(ROUNDINGS), default="reference", show_default=True,
        help="How native code rounds products of 8-bit numbers: as operations are defined, or as XNNPACK does.")
    return option(command)


def profiled(command: Function) -> Function:
    """The profile of the commands that run a model."""
    option = click.option("--profile", "profile_to", metavar="FILE", type=MODEL,
                          help="Write where the time of a run goes: a table (.txt), JSON (.json), or a trace for "
                               "Perfetto and chrome://tracing (.trace.json).")
    return option(command)


def tolerant(command: Function) -> Function:
    """What is taken for equal."""
    for name, text in (("--rtol", "The same, in parts of the expected number. [floats 1e-4, integers 0]"),
                       ("--atol", "How far a number may be off. [floats 1e-4, integers 0]")):
        command = click.option(name, type=click.FloatRange(0), metavar="X", help=text)(command)
    return command


def threaded(text: str) -> Callable[[Function], Function]:
    """The threads of a run."""
    return click.option("--threads", type=click.IntRange(1), metavar="N", help=text)


def targeted(command: Function) -> Function:
    """What the device is, and how a model is lowered for it."""
    for option in reversed((
            click.option("--target", type=Device(), default="30", show_default=True,
                         help="The NNAPI feature level of the device; or a file with the level, operations, types, "
                              "ranks and shapes that it takes (docs/targets.md)."),
            click.option("--no-ex", is_flag=True, help="The device has no NNAPI-EX operations."),
            click.option("--no-experimental", is_flag=True, help="The device has no DENSIFY."),
            click.option("--sparse", type=click.Choice(("keep", "fold")), default="keep", show_default=True,
                         help="Sparse weights: kept compressed where the device has DENSIFY, or made dense."),
            click.option("--hybrid", type=click.Choice(("exact", "float")), default="exact", show_default=True,
                         help="Float activations beside int8 weights: exactly as in TFLite, on the host, or the "
                              "device's float operations on dequantised weights. --strict takes the latter."),
            click.option("--int64", type=click.Choice(("exact", "narrow")), default="exact", show_default=True,
                         help="64-bit integers: in 32 bits where that is proven to be the same and on the host "
                              "elsewhere, or in 32 bits wherever the device has an operation. --strict takes the "
                              "latter."),
            click.option("--qdq", type=click.Choice(("codes", "floats")), default="codes", show_default=True,
                         help="What ONNX dequantises, computes and quantises: one operation on codes, rounded as "
                              "NNAPI does, or floats between codes, rounded as ONNX says."))):
        command = option(command)
    return command


def targeted_by(options: dict[str, Any]) -> dict[str, Any]:
    """The options of `targeted` as the target that they say; beside a device's file they are what is asked of it."""
    from dataclasses import replace

    from ..target import Target
    device, no_ex, none = (options.pop(n) for n in ("target", "no_ex", "no_experimental"))
    ways, context = ("sparse", "hybrid", "int64", "qdq"), click.get_current_context(silent=True)
    asked: dict[str, Any] = {n: options[n] for n in ways if context is None or context.get_parameter_source(
        n) is not ParameterSource.DEFAULT}
    asked |= {n: False for n, lacking in (("ex", no_ex), ("experimental", none)) if lacking}
    found = Target.named(device)
    rest = {n: v for n, v in options.items() if n not in ways}
    return {**rest, "target": replace(found, **asked)}


def coded(command: Function) -> Function:
    """What --emit object makes code for."""
    for option in reversed((
            click.option("--triple", type=click.Choice(TRIPLES), help="What --emit object is for. [this machine]"),
            click.option("--cpu-features", type=click.Choice(FEATURES), default="baseline", show_default=True,
                         help="What its processors have: baseline is what all have, host what this one has."))):
        command = option(command)
    return command


def traced(command: Function) -> Function:
    """What lowering did."""
    option = click.option("--trace-passes", "traced", is_flag=True,
                          help="Say on stderr what each rule of lowering did to which operation, and why a rule left "
                               "one alone; with --json, as its key trace.")
    return option(command)


def sections(command: Function) -> Function:
    """The tables of `inspect`."""
    for name, text in (("memory", "What of the arena, a run's memory, is in use at each step."),
                       ("quant", "The grid of each tensor (scale and zero point), and the reals that it reaches."),
                       ("sparsity", "What of the constants is not zero, their levels, the bytes saved."),
                       ("tensors", "Every tensor."), ("ops", "Every operation.")):
        command = click.option(f"--{name}", "sections", flag_value=name, multiple=True, help=text)(command)
    return command


def entered(command: Function) -> Function:
    """The entry point of a source file."""
    option = click.option("--signature", metavar="NAME",
                          help="The entry point, where it is not the main one.")
    return option(command)


def examples(*lines: str) -> str:
    """What `--help` ends with: commands as they may be given, and the exit codes."""
    exits = "\n".join(f"  {int(c)}  {c.meaning}" for c in ExitCode)
    return "\b\nExamples:\n" + "\n".join(f"  nnx-convert {line}" for line in lines) + "\n\n\b\nExit codes:\n" + exits
