"""Every command and every snippet of the README and of docs/ does what its page says."""
from __future__ import annotations

import re
from pathlib import Path

import pages
import pytest
from builds import MISSING
from click import ClickException

from nnx_convert import UsageError
from nnx_convert.cli.entry import ended
from nnx_convert.errors import ExitCode
from nnx_convert.ops.custom import CUSTOM_OPS

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_BLOCKS = [p for p in PAGES if "```" in p.read_text(encoding="utf-8")]
#: What says that a page needs compilers.
BUILDS = ("cmake", "g++ ", "cc ")


def built(path: Path) -> bool:
    """Whether something is compiled on the way."""
    return any(word in b.text for b in pages.blocks(path.read_text(encoding="utf-8")) for word in BUILDS
               if b.language == "bash")


def page(*blocks: tuple[str, str, str]) -> str:
    """A page of blocks, each a mark, a language and a text."""
    return "\n".join(f"<!-- {mark} -->\n```{language}\n{text}\n```" if mark else f"```{language}\n{text}\n```"
                     for mark, language, text in blocks)


OPS = "", "bash", "nnx-convert ops CONV_2D"
#: What a page may not say, and how that is told: a page that cannot fail would say nothing.
WRONG = {
    "another output": (page(OPS, ("output", "text", "DEPTHWISE_CONV_2D\n...")), "and not"),
    "any output": (page(OPS, ("output", "text", "...")), "nothing is shown"),
    "another code": (page(("ends with 1", "bash", "nnx-convert ops CONV_2D")), "ends with 0"),
    "a command that fails": (page(("", "bash", "nnx-convert ops NONE\nnnx-convert ops")), "ops NONE ends with 2"),
    "a shell that fails": (page(("", "bash", "false | true")), "it ends with 1"),
    "an option that there is not": (page(("elsewhere: a phone", "bash", "nnx-convert run x --nothing")), "--nothing"),
    "a shell's syntax": (page(("elsewhere: a phone", "bash", "if true; then")), "syntax error"),
    "no reason": (page(("elsewhere", "bash", "true")), "why it is not run"),
    "Python": (page(("", "python", "assert 1 == 2")), "line 1: AssertionError"),
    "no mark": (page(("", "toml", "a = 1")), "no mark"),
    "another mark": (page(("never", "bash", "true")), "no mark 'never'"),
    "a command that nobody runs": (page(("the other command", "bash", "true")), "no mark 'the other command'"),
    "a code of Python": (page(("ends with 1", "python", "pass")), "with a code"),
    "an open fence": ("```bash\ntrue\n", "not closed"),
    "a pipeline's command": (page(("elsewhere: CI", "yaml", "script: [nnx-convert ci a.toml --never]")), "--never"),
}


@pytest.mark.parametrize(("text", "told"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_with_a_page_is_told(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, UsageError, ClickException), match=re.escape(told)):
        pages.reader(tmp_path, ROOT / "models", tmp_path / "cache").follow(text)


def test_a_page_is_one_session(tmp_path: Path) -> None:
    """Files, variables of the shell and names of Python last; what Python registers, the command does not know."""
    text = page(
        ("file: a/b.txt", "text", "hello"), ("", "bash", "export WHO=you\ncat a/b.txt"), ("output", "text", "hello"),
        ("", "bash", "echo $WHO"), ("output", "text", "you"),
        ("", "python", "import nnx_convert as nnx\nn = 1\nnnx.register_custom_op('Mine', None, None)"),
        ("", "python", "from nnx_convert.ops.custom import CUSTOM_OPS\nprint(n, 'Mine' in CUSTOM_OPS)"),
        ("output", "text", "1 True"), ("", "bash", "nnx-convert ops CONV_2D > ops.txt"),
        ("", "bash", "grep -c CONV_2D ops.txt"), ("output", "text", "1"),
        ("with: no-such-tool", "bash", "no-such-tool"), ("output", "text", "whatever it says"))
    pages.reader(tmp_path, ROOT / "models", tmp_path / "cache").follow(text)
    assert "Mine" not in CUSTOM_OPS


@pytest.mark.parametrize("path", [
    pytest.param(p, id=p.stem, marks=[pytest.mark.skipif(built(p) and bool(MISSING), reason=f"{MISSING} missing")])
    for p in WITH_BLOCKS])
def test_a_page_does_what_it_says(path: Path, tmp_path: Path) -> None:
    here, cache = tmp_path / "here", tmp_path / "cache"
    here.mkdir()
    pages.reader(here, ROOT / "models", cache).follow(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("words", [["record-lib", "out"], *(
    [str(ROOT / "models" / "digits_cnn.tflite"), "--quiet", "--emit", f"{kind}:out"] for kind in ("ndk", "object"))],
    ids=["record-lib", "ndk", "object"])
def test_what_is_written_has_a_page_in_order(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert ended(words) == ExitCode.GOOD
    shell = [b for b in pages.blocks(Path("out/README.md").read_text(encoding="utf-8")) if b.language == "bash"]
    assert shell
    for block in shell:
        pages.looked_at(block)
