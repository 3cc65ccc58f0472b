"""Commands that are loaded when they are used: `--help` must not wait for what it does not run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from greenroom.core.base.errors import WorldFault
from greenroom.interfaces.cli.asked.setup import shared
from greenroom.interfaces.cli.asked.table import ENTRIES, GROUPS, SECTIONS, Entry
from greenroom.interfaces.cli.entry.lenient import LenientCommand, lenient
from greenroom.interfaces.cli.entry.narrow import WIDEST, FittingContext
from greenroom.interfaces.cli.entry.verbatim import VerbatimCommand
from greenroom.interfaces.cli.loading import load

if TYPE_CHECKING:
    # typer 0.29 carries its own copy of click and shows its classes nowhere else.
    from typer._click import Command, Context, HelpFormatter, Parameter

WINDOWS: Final = (
    "Greenroom runs on Linux and macOS. On Windows use WSL2: run `wsl --install`, then install Greenroom inside it."
)
SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": WIDEST}


def on_windows() -> bool:
    """Whether this is a system without what the log needs."""
    return os.name == "nt"


def load_command(entry: Entry) -> Callable[..., int]:
    """How a command is typed."""
    return cast("Callable[..., int]", load(entry.room, entry.function))


def options() -> list[Parameter]:
    """The shared options, made anew for each command."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(shared)
    return get_command(app).params


class LazyCommand(TyperCommand):
    """A name and a line of help; the real command takes over when it is called."""

    def __init__(self, entry: Entry) -> None:
        name = entry.name.split()[-1]
        super().__init__(name, help=entry.help, short_help=entry.help, rich_markup_mode=None)
        self._entry = entry

    def real(self) -> Command:
        """The real command, with its own options and the shared ones."""
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        kind = VerbatimCommand if self._entry.verbatim else LenientCommand
        app.command(self.name, cls=kind, context_settings=SETTINGS)(load_command(self._entry))
        command = get_command(app)
        command.params.extend(options())
        return command

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: Context | None = None,
        **extra: object,
    ) -> Context:
        """Hand over."""
        if on_windows():
            raise WorldFault(WINDOWS)
        return self.real().make_context(info_name, args, parent, **extra)


class Family(TyperGroup):
    """The commands that share their first word."""

    context_class = FittingContext

    def __init__(self, name: str, help_: str) -> None:
        super().__init__(
            name=name,
            help=help_,
            no_args_is_help=True,
            context_settings=SETTINGS,
            rich_markup_mode=None,
        )

    def get_params(self, ctx: Context) -> list[Parameter]:
        """All of them, lenient; made when somebody names this family, of which there are a dozen."""
        self.params = self.params or options()
        return lenient(super().get_params(ctx))


def add(group: TyperGroup, entry: Entry) -> None:
    """Put a command where its name says: one of two words into the family of the first."""
    first, _, second = entry.name.partition(" ")
    if second and first not in group.commands:
        group.add_command(Family(first, GROUPS[first]))
    place = group.commands[first] if second else group
    if isinstance(place, TyperGroup):
        place.add_command(LazyCommand(entry))


class Sections(TyperGroup):
    """A group whose help lists its commands by what people want to do."""

    context_class = FittingContext

    def get_params(self, ctx: Context) -> list[Parameter]:
        """All of them, lenient."""
        return lenient(super().get_params(ctx))

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """What one can do comes before how."""
        self.format_commands(ctx, formatter)
        records = (param.get_help_record(ctx) for param in self.get_params(ctx))
        with formatter.section(bold("Options")):
            formatter.write_dl([record for record in records if record is not None])

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """One list per section, all with the same columns."""
        width = max(len(entry.name) for entry in ENTRIES)
        for section in SECTIONS:
            with formatter.section(bold(section.capitalize())):
                formatter.write_dl([(one.name.ljust(width), one.help) for one in ENTRIES if one.section == section])


def bold(text: str) -> str:
    """For a terminal that wants it."""
    wanted = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return typer.style(text, bold=True) if wanted else text
