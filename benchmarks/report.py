"""The tables of timings: on the screen, and as a page for the documentation."""
from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterator, Sequence

from .rows import BOTH, FAST, OWN, Row, Verdict, verdicts
from .suite import TINY, verdict

NAMES = {"litert": "LiteRT", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
HEAD = (f"{'model':38} {'thr':>3} {'kind':5} {'ours ms':>9} {'fast':>9} {'own peer':>9} {'openvino':>9} "
        f"{'ratio':>6} {'of min':>6}")
#: What code may use of this machine, by what Linux calls it, that is worth telling.
TOLD = ("avx2", "fma", "avx512f", "avx512_vnni", "amx_int8", "asimddp", "i8mm", "sve")


def missing() -> list[str]:
    """A line for each engine that is not installed."""
    from nnx_convert.peers import PEERS
    return [f"{peer.distribution} is not installed (extra [bench]): its models are timed without it"
            for peer in PEERS.values() if not peer.there]


def milliseconds(seconds: float | None) -> str:
    """Seconds as milliseconds; a dash for nothing."""
    return "-" if seconds is None else f"{1e3 * seconds:.3f}"


def part(value: float | None) -> str:
    """A ratio; a dash for nothing."""
    return "-" if value is None else f"{value:.2f}"


def line(row: Row) -> str:
    """A row for the screen."""
    if "ours" not in row.median:
        return f"{row.model:38} {row.threads:3} {row.problems.get('ours', '')}"
    times = [row.median["ours"], *(row.median.get(e or "") for e in (FAST, row.own, BOTH))]
    rest = f"{1e6 * row.beyond:+.1f} us" if row.tiny else ""
    return " ".join((f"{row.model:38} {row.threads:3} {row.kind:5}", *(f"{milliseconds(t):>9}" for t in times),
                     f"{part(row.ratio(*OWN)):>6} {part(row.ratio(*OWN, least=True)):>6}", rest)).rstrip()


def said(v: Verdict) -> str:
    """A figure of the whole table and its bound."""
    return f"{v.what}: {part(v.value)} {'' if v.value is None else verdict(v.value, v.bound)}".rstrip()


def page(rows: Sequence[Row], runs: int, threads: Sequence[int]) -> str:
    """The page, in Markdown."""
    return "\n".join((*opening(rows, runs), *(text for n in threads for text in tables(rows, n)), ""))


def opening(rows: Sequence[Row], runs: int) -> Iterator[str]:
    """How it was measured: on what, with what, when."""
    versions = {engine: version for row in rows for engine, version in row.versions.items()}
    yield from (
        "# Performance", "",
        "Made by `python -m benchmarks.latency --threads 1,2 --write`: the runnable models of the public suite that "
        "have recorded outputs, beside LiteRT with XNNPACK (TFLite), ONNX Runtime (ONNX) and OpenVINO (both, floats "
        "in 32 bits).", "",
        f"Milliseconds, the median of {runs} runs, copies of inputs and outputs included for all. The engines take "
        "turns in one process for each model. A ratio is what ours takes in parts of the other's time; that of the "
        "least times stands beside it. `int8`: most multiply-adds are of weights or values of 8 bits; integers are "
        "rounded as LiteRT's reference kernels do, in the column `fast` as XNNPACK does. Where an engine takes under "
        f"{1e6 * TINY:.0f} us, the call is what is measured: then the microseconds that ours takes more are told, and "
        "the row is in no mean.", "",
        f"- Machine: {machine()}",
        f"- Date: {datetime.datetime.now(tz=datetime.UTC).date().isoformat()}",
        f"- Versions: Python {platform.python_version()}, nnx-convert {versions.get('ours', '')}, "
        + ", ".join(f"{NAMES[e]} {versions[e]}" for e in NAMES if versions.get(e)), "")


def machine() -> str:
    """This machine by what it can do."""
    flags: set[str] = set()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            flags = {word for text in file if text.startswith(("flags", "Features")) for word in text.split()}
    known = ", ".join(name for name in TOLD if name in flags)
    return f"{platform.machine()}, {os.cpu_count()} cores" + (f" with {known}" if known else "")


def tables(rows: Sequence[Row], threads: int) -> Iterator[str]:
    """What one number of threads comes to, and its rows."""
    yield from (f"## {threads} thread{'s' * (threads > 1)}", "", "| Figure | Value | Bound |", "|---|---|---|")
    yield from (f"| {v.what} | {part(v.value)} | {'-' if v.bound is None else f'{v.bound:g}'} |"
                for v in verdicts(rows, threads))
    columns = ("Model", "Kind", "Ours", "fast", "LiteRT or ONNX Runtime", "OpenVINO", "Ratio", "of least",
               "to OpenVINO", "us over")
    yield from ("", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|")
    yield from (f"| {' | '.join(cells(row))} |" for row in rows if row.threads == threads)
    yield ""


def cells(row: Row) -> Iterator[str]:
    """A row of the page."""
    yield row.model
    if "ours" not in row.median:
        yield from ("", f"does not run: {row.problems.get('ours', '')}", *[""] * 7)
        return
    yield row.kind
    yield from (milliseconds(row.median.get(e or "")) for e in ("ours", FAST, row.own, BOTH))
    yield from (part(row.ratio(*OWN)), part(row.ratio(*OWN, least=True)), part(row.ratio(BOTH)))
    yield f"{1e6 * row.beyond:+.1f}" if row.tiny else ""
