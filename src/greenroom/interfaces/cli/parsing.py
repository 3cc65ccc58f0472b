"""What typer does not do by itself: help as wide as the terminal, values that need no pydantic, words with a dash."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from typer._click import Context, HelpFormatter
from typer.core import TyperArgument, TyperCommand, TyperOption

if TYPE_CHECKING:
    from typer._click import Context, Parameter

WIDEST: Final = 100
NARROWEST: Final = 24
"""Columns below which nothing can be laid out."""


EXITS: Final = "Exit codes:"
"""How a line begins that lists codes and what they mean, with semicolons between them, to the end of a help text."""

TYPED: Final = re.compile(r" <(?:str|list\[str\])>$")
"""What typer adds to a name that is a text, or several words."""


class FittingFormatter(HelpFormatter):
    """One that breaks lines where the terminal ends."""

    def __init__(self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None) -> None:
        there = min(shutil.get_terminal_size().columns, max_width or WIDEST) - 2
        super().__init__(indent_increment, width or max(there, NARROWEST), max_width)

    def write_dl(self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Names beside what they mean; a name that leaves no room for that has a line of its own."""
        named = [(TYPED.sub(" TEXT" if name.startswith("-") else "", name), told) for name, told in rows]
        super().write_dl(named, min(col_max, self.width // 2), col_spacing)

    def write_text(self, text: str) -> None:
        """Paragraphs, and exit codes as a list."""
        told, found, codes = text.partition(f"\n{EXITS} ")
        super().write_text(told)
        if found:
            self.write_paragraph()
            super().write_text(EXITS)
            with self.indentation():
                every = " ".join(codes.rstrip(".").split()).split("; ")
                self.write_dl([(code, meaning) for code, _, meaning in (one.partition(" ") for one in every)])


class FittingContext(Context):
    """What a command is run in, whose help fits."""

    formatter_class = FittingFormatter


class LenientOption(TyperOption):
    """An option; what it calls is called."""

    def process_value(self, ctx: Context, value: object) -> object:
        """Check it, where there is something to check."""
        if not ctx.resilient_parsing and not _is_fine(self, value):
            return super().process_value(ctx, value)
        return self.callback(ctx, self, value) if self.callback is not None else value


class LenientArgument(TyperArgument):
    """An argument."""

    def process_value(self, ctx: Context, value: object) -> object:
        """Check it, where there is something to check."""
        return value if ctx.resilient_parsing or _is_fine(self, value) else super().process_value(ctx, value)


def _is_fine(param: TyperOption | TyperArgument, value: object) -> bool:
    """Whether it is as it is to be: a text that was typed, or nothing where nothing is wanted."""
    if param.multiple or param.nargs != 1:
        return False
    if value is None:
        return not param.required
    return param.type_descriptor.annotation is str and isinstance(value, str)


class LenientCommand(TyperCommand):
    """A command all of whose parameters are lenient."""

    context_class = FittingContext

    def get_params(self, ctx: Context) -> list[Parameter]:
        """All of them, `--help` too."""
        return lenient(super().get_params(ctx))


def lenient(params: list[Parameter]) -> list[Parameter]:
    """The same parameters, made lenient: typer does not let us name their classes."""
    for param in params:
        if isinstance(param, TyperOption):
            param.__class__ = LenientOption
        elif isinstance(param, TyperArgument):
            param.__class__ = LenientArgument
    return params


SAID: Final = frozenset({"--quiet", "--verbose", "--help", "--version"})
"""Behind the first word these are words: many programs have them, and a rule without one would allow more."""


class VerbatimCommand(LenientCommand):
    """`permissions add allow command rm -rf x` means what it says. Behind `--` everything is a word in any case."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """The same, with the words behind `--`."""
        if "--" in args or ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        found = [param for param in self.get_params(ctx) if isinstance(param, TyperOption)]
        takes = {name: not param.is_flag for param in found for name in (*param.opts, *param.secondary_opts)}
        return super().parse_args(ctx, sorted_out(args, takes))


def sorted_out(args: Sequence[str], takes: Mapping[str, bool]) -> list[str]:
    """The options, `--`, the words. `takes` says of each option whether it takes a value."""
    options, words = list[str](), list[str]()
    rest = iter(args)
    for one in rest:
        if _is_option(one, takes, begun=bool(words)):
            options += _with_value(one, rest, takes)
        else:
            words.append(one)
    return [*options, "--", *words] if words else options


def _is_option(one: str, takes: Mapping[str, bool], *, begun: bool) -> bool:
    if not begun:
        return one.startswith("-") and one != "-"
    name = one.partition("=")[0]
    return name.startswith("--") and name in takes and name not in SAID


def _with_value(one: str, rest: Iterator[str], takes: Mapping[str, bool]) -> list[str]:
    value = next(rest, None) if "=" not in one and takes.get(one) else None
    return [one] if value is None else [one, value]
