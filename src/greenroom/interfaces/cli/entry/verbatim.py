"""Commands whose words are somebody else's command line: a dash in it means what it means there, not something here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from typer.core import TyperOption

from greenroom.interfaces.cli.entry.lenient import LenientCommand

if TYPE_CHECKING:
    from typer._click import Context

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
