"""Regular expressions matched in time that grows with the text alone: all ways are gone at once, none is gone back.

The standard library's parser reads the pattern, which is written in RE2's syntax nearly; what RE2 has not
(references back, looking around) is refused, as there.
"""
from __future__ import annotations

import re
import string
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from ..frozen import frozen

#: States a pattern may have: counted repetitions multiply.
MOST = 20_000
Test = Callable[[str], bool]
#: What must hold between two characters: begin or end of the text, begin of a line, a word's border.
Border = Callable[[str, int], bool]


@dataclass
class State:
    """A place in a pattern: a character that passes `test` leads to `then`; without a test, one is there at once,
    where `border` holds."""

    test: Test | None = None
    border: Border | None = None
    then: list[int] = field(default_factory=list)


@frozen
class Automaton:
    """A pattern as states: from `first` to `last`."""

    states: tuple[State, ...]
    first: int
    last: int

    def matches(self, text: str) -> bool:
        """Whether the pattern matches the whole text."""
        here = self._reached([self.first], text, 0)
        for i, c in enumerate(text):
            passed = [n for s in here if (test := self.states[s].test) is not None and test(c)
                      for n in self.states[s].then]
            here = self._reached(passed, text, i + 1)
            if not here:
                return False
        return self.last in here

    def _reached(self, start: Iterable[int], text: str, at: int) -> set[int]:
        """The states that are there without a further character."""
        found, todo = set[int](), list(start)
        while todo:
            s = todo.pop()
            if s in found:
                continue
            found.add(s)
            state = self.states[s]
            if state.test is None and (state.border is None or state.border(text, at)):
                todo += state.then
        return found


def compiled(pattern: str) -> Automaton:
    """The automaton of a pattern; raises `ValueError` on what RE2 does not take."""
    parser: Any = import_module("re._parser")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parser.parse(spelt(pattern))
        if tree.state.flags & re.VERBOSE:
            raise ValueError("it has the flag x")
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(str(error)) from error
    made = Builder([], tree.state.flags)
    first = made.state()
    last = made.sequence(tree, first)
    return Automaton(tuple(made.states), first, last)


def spelt(pattern: str) -> str:
    """A pattern as the standard library's parser has it: named classes of characters and the end of the text are
    written in another way there. Raises `ValueError` on a name that is none."""
    def part(found: re.Match[str]) -> str:
        if found[0] in ENDS:
            return ENDS[found[0]]
        return found[0][0] + MEMBER.sub(member, found[0][1:]) if found[0][0] == "[" else found[0]

    def member(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None:
            return found[0]
        if name not in NAMED:
            raise ValueError(f"[:{name}:] is no class of characters")
        if not found["no"]:
            return "".join(f"\\x{ord(c):02x}" for c in NAMED[name])
        return "".join(f"\\x{i:02x}" for i in range(128) if chr(i) not in NAMED[name]) + r"\x80-\U0010ffff"
    return PART.sub(part, pattern)


@dataclass
class Builder:
    """States in the making; each part of a pattern begins at a state and gives the one that it ends at."""

    states: list[State]
    flags: int

    def state(self, test: Test | None = None, border: Border | None = None) -> int:
        """A new state."""
        if len(self.states) >= MOST:
            raise ValueError(f"it has more than {MOST} states")
        self.states.append(State(test, border))
        return len(self.states) - 1

    def link(self, a: int, b: int) -> int:
        """From one state to another; the other."""
        self.states[a].then.append(b)
        return b

    def sequence(self, items: Any, at: int) -> int:
        """Parts one after the other."""
        for kind, value in items:
            part = getattr(self, str(kind).lower(), None)
            if part is None:
                raise ValueError(f"{str(kind).lower().replace('_', ' ')} is not taken")
            at = part(value, at)
        return at

    def character(self, test: Test, at: int) -> int:
        """One character that passes a test."""
        return self.link(self.link(at, self.state(test)), self.state())

    def literal(self, code: int, at: int) -> int:
        """One character."""
        return self.character(self._test("literal", code), at)

    def not_literal(self, code: int, at: int) -> int:
        """Any other character."""
        test = self._test("literal", code)
        return self.character(lambda c: not test(c), at)

    def any(self, _: None, at: int) -> int:
        """Any character but the end of a line."""
        every = bool(self.flags & re.DOTALL)
        return self.character(lambda c: every or c != "\n", at)

    def in_(self, items: list[tuple[Any, Any]], at: int) -> int:
        """A character of a class."""
        negated = str(items[0][0]) == "NEGATE"
        tests = [self._test(str(k).lower(), v) for k, v in items[negated:]]
        return self.character(lambda c: any(t(c) for t in tests) != negated, at)

    def _test(self, kind: str, value: Any) -> Test:
        """The test of one member of a class. RE2's classes are of ASCII."""
        if kind == "category":
            name = str(value).lower().removeprefix("category_")
            test = CLASSES[name.removeprefix("not_")]
            return (lambda c: not test(c)) if name.startswith("not_") else test
        low, high = (value, value) if kind == "literal" else value
        folded = bool(self.flags & re.IGNORECASE)
        return lambda c: any(low <= ord(v) <= high for v in ({c, c.lower(), c.upper()} if folded else c) if len(v) == 1)

    def branch(self, value: tuple[None, list[Any]], at: int) -> int:
        """One of several."""
        end = self.state()
        for way in value[1]:
            self.link(self.sequence(way, self.link(at, self.state())), end)
        return end

    def subpattern(self, value: tuple[Any, int, int, Any], at: int) -> int:
        """A group; its flags hold within."""
        before = self.flags
        self.flags = (self.flags | value[1]) & ~value[2]
        end = self.sequence(value[3], at)
        self.flags = before
        return end

    def max_repeat(self, value: tuple[int, Any, Any], at: int) -> int:
        """The same several times; how many of them first is no matter, where all ways are gone."""
        least, most, items = value
        for _ in range(least):
            before, at = at, self.sequence(items, at)
            if at == before:                     # nothing, however often
                return at
        end = self.state()
        self.link(at, end)
        if most >= (1 << 32) - 1:
            start = self.link(at, self.state())
            self.link(self.sequence(items, start), start)
            return self.link(start, end)
        for _ in range(most - least):
            at = self.sequence(items, self.link(at, self.state()))
            self.link(at, end)
        return end

    min_repeat = max_repeat

    def at(self, where: Any, at: int) -> int:
        """A place between characters."""
        name = str(where).lower().removeprefix("at_")
        lines = bool(self.flags & re.MULTILINE)
        return self.link(self.link(at, self.state(border=BORDERS[name, lines])), self.state())


# `in` and the rest are Python's words: the parser's names for them.
setattr(Builder, "in", Builder.in_)


def _word(c: str) -> bool:
    return c.isascii() and (c.isalnum() or c == "_")


def _border(text: str, i: int) -> bool:
    return (i > 0 and _word(text[i - 1])) != (i < len(text) and _word(text[i]))


#: What `spelt` looks at: an escape or a class of characters; within a class, an escape or a named class.
PART = re.compile(r"\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]", re.DOTALL)
MEMBER = re.compile(r"\\.|\[:(?P<no>\^?)(?P<name>\w+):\]", re.DOTALL)
#: The end of the text, whose name the parser takes for another escape.
ENDS = {r"\z": r"\Z"}
ASCII = "".join(map(chr, range(128)))
NAMED = {"alnum": string.ascii_letters + string.digits, "alpha": string.ascii_letters, "ascii": ASCII,
         "blank": " \t", "cntrl": ASCII[:32] + ASCII[127:], "digit": string.digits, "graph": ASCII[33:127],
         "lower": string.ascii_lowercase, "print": ASCII[32:127], "punct": string.punctuation,
         "space": " \t\n\v\f\r", "upper": string.ascii_uppercase, "word": string.ascii_letters + string.digits + "_",
         "xdigit": string.hexdigits}
CLASSES: dict[str, Test] = {"digit": lambda c: "0" <= c <= "9", "space": lambda c: c in "\t\n\f\r ", "word": _word}
BORDERS: dict[tuple[str, bool], Border] = {
    ("beginning", False): lambda text, i: i == 0,
    ("beginning", True): lambda text, i: i == 0 or text[i - 1] == "\n",
    ("end", False): lambda text, i: i == len(text),
    ("end", True): lambda text, i: i == len(text) or text[i] == "\n",
    **{("beginning_string", m): lambda text, i: i == 0 for m in (False, True)},
    **{("end_string", m): lambda text, i: i == len(text) for m in (False, True)},
    **{("boundary", m): _border for m in (False, True)},
    **{("non_boundary", m): lambda text, i: not _border(text, i) for m in (False, True)}}
