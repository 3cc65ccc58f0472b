"""What typer does not do by itself: help as wide as the terminal, values that need no pydantic, words with a dash."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from typer import BadParameter
from typer._click import Context, HelpFormatter
from typer.core import TyperArgument, TyperCommand, TyperOption

if TYPE_CHECKING:
    from typer._click import Context, Parameter

WIDEST: Final = 100

EXITS: Final = "Exit codes:"
"""How a line begins that lists codes and what they mean, with semicolons between them, to the end of a help text."""

TYPED: Final = re.compile(r" <(?:str|list\[str\])>$")
"""What typer adds to a name that is a text, or several words."""


class FittingFormatter(HelpFormatter):
    """Names without types of Python, and exit codes as a list."""

    def write_dl(self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Names beside what they mean; a name that leaves no room for that has a line of its own."""
        named = [(TYPED.sub(" TEXT" if name.startswith("-") else "", name), told) for name, told in rows]
        super().write_dl(named, col_max, col_spacing)

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
        if not ctx.resilient_parsing and not _is_fine(self, value):
            return super().process_value(ctx, value)
        return self.callback(ctx, self, value) if self.callback is not None else value


class LenientArgument(TyperArgument):
    """An argument."""

    def process_value(self, ctx: Context, value: object) -> object:
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
        return lenient(super().get_params(ctx))


def lenient(params: list[Parameter]) -> list[Parameter]:
    """The same parameters, made lenient: typer does not let us name their classes."""
    for param in params:
        if isinstance(param, TyperOption):
            param.__class__ = LenientOption
        elif isinstance(param, TyperArgument):
            param.__class__ = LenientArgument
    return params


class RuleCommand(LenientCommand):
    """An option of ours behind the first word of a rule may be meant as one of its words: without it the rule would
    allow more. So it has to be quoted."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """The same, with a refusal."""
        rest, words = super().parse_args(ctx, [*args]), ctx.params.get("rule") or [""]
        behind = args[args.index(words[0]) :] if words[0] in args and "--" not in args else []
        eaten = next((word for word in behind if word in ("-q", "--quiet", "-v", "--verbose", "--home")), "")
        if eaten:
            raise BadParameter(f"{eaten} would not be a part of the rule. Quote the whole rule.", ctx)
        return rest
