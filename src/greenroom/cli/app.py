"""The command line: the table of commands, the loader, and the entry point.

`greenroom --help` imports only this file and what it needs.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Final, cast, get_type_hints

import typer
from typer import BadParameter
from typer._click import Context, HelpFormatter  # typer 0.29 carries its own copy of click
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from greenroom.cli.errors import StdoutFault, error_fields, find_output_format, print_error, report_error, report_usage
from greenroom.cli.exit_codes import Exit
from greenroom.cli.process import silence
from greenroom.cli.setup import Access, CommandSetup, declare_options, read_setup
from greenroom.core.base.errors import GreenroomError, WorldFault

if TYPE_CHECKING:
    from typer._click import Command, Parameter
    from typer._click.shell_completion import CompletionItem

HELP: Final = """A team of AI agents that you can trust with real work.

An ID is the start of a team's id, `last` for the newest team, or TEAM/TASK."""
EPILOG: Final = (
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 settings or log, 4 provider, 5 limit, 6 waiting for a person, "
    "7 finished but not verified."
)
WINDOWS_HINT: Final = (
    "Greenroom runs on Linux and macOS. On Windows use WSL2: run `wsl --install`, then install Greenroom inside it."
)
CONTEXT_SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
PACKAGE: Final = "greenroom.cli"

# ---------------------------------------------------------------------------------------------------------- the table

SECTIONS: Final = ("start", "organise", "changes", "inspect", "control", "tools and trust", "set up", "storage")
GROUPS: Final = {
    "agents": "List, show and create agents.",
    "prompt": "Show what models are sent.",
    "models": "List and check models.",
    "eval": "Evaluate a model.",
    "config": "Show the settings and their files.",
    "approvals": "List and answer approval requests.",
    "workspaces": "List and remove the worktrees of runs.",
    "tools": "List, show and call tools.",
    "permissions": "List, add and remove permission rules.",
    "mcp": "List, add, check and remove MCP servers.",
    "org": "Create and run organisations of people, managers and agents.",
}
"""Help of command groups, by the first word of their commands."""


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command: the function of this name in `commands.MODULE`.

    With `by_id` its first argument is an ID, which a shell completes without loading the command.
    """

    section: str
    name: str
    module: str
    access: Access
    help: str
    by_id: bool = False


COMMANDS: Final = (
    CommandEntry("start", "demo", "demo", "none", "Watch a run from the request to the undo; needs no key."),
    CommandEntry("start", "ask", "run", "make", "Ask a model a question; print the answer on stdout."),
    CommandEntry("start", "run", "run", "make", "Give an agent a task; print its answer on stdout."),
    CommandEntry("start", "chat", "chat", "make", "Chat with an agent, or resume a chat."),
    CommandEntry("start", "doctor", "home", "none", "Check this machine and the log for problems."),
    CommandEntry("organise", "org new", "org", "look", "Create the file of a new organisation."),
    CommandEntry("organise", "org start", "org", "make", "Run an organisation until Ctrl-C."),
    CommandEntry("organise", "org status", "org", "look", "Show the status of an organisation."),
    CommandEntry("organise", "org list", "org", "look", "List the organisations and what runs them."),
    CommandEntry("organise", "org dismiss", "org", "change", "Remove an agent or a person for good."),
    CommandEntry("organise", "org stop", "org", "change", "Stop an organisation, here or in another terminal."),
    CommandEntry("organise", "inbox", "org", "make", "Open your inbox in an organisation."),
    CommandEntry("changes", "diff", "change", "look", "Print the change of a run as a patch.", by_id=True),
    CommandEntry("changes", "apply", "change", "look", "Apply the change of a run as one commit.", by_id=True),
    CommandEntry("changes", "branch", "change", "look", "Put the change of a run on a new branch.", by_id=True),
    CommandEntry("changes", "discard", "change", "look", "Delete the worktree of a run.", by_id=True),
    CommandEntry("changes", "undo", "change", "look", "Undo an applied change, byte for byte.", by_id=True),
    CommandEntry("changes", "rewind", "control", "change", "Continue from an earlier step as a new run.", by_id=True),
    CommandEntry("changes", "blame", "change", "look", "Show which step wrote a line, and why."),
    CommandEntry("changes", "workspaces list", "home", "none", "List the worktrees of runs."),
    CommandEntry("changes", "workspaces clean", "home", "look", "Remove worktrees that hold no unapplied work."),
    CommandEntry("inspect", "runs", "runs", "look", "List runs and their tasks, newest first."),
    CommandEntry("inspect", "show", "runs", "look", "Show a team: tasks, agents, messages, costs.", by_id=True),
    CommandEntry(
        "inspect", "events", "runs", "look", "Print the events of a team; --follow to keep watching.", by_id=True
    ),
    CommandEntry("inspect", "replay", "runs", "look", "Replay a run, or show its state at a version.", by_id=True),
    CommandEntry("inspect", "cost", "runs", "look", "Show the cost of runs, agents or models.", by_id=True),
    CommandEntry("control", "pause", "control", "change", "Pause a team or a task.", by_id=True),
    CommandEntry(
        "control", "resume", "control", "change", "Resume a team; run it here if no process does.", by_id=True
    ),
    CommandEntry("control", "send", "control", "change", "Send a message to the agent that works on it.", by_id=True),
    CommandEntry("control", "cancel", "control", "change", "Cancel a task and stop its running steps.", by_id=True),
    CommandEntry("control", "answer", "control", "change", "Answer an approval request or a question.", by_id=True),
    CommandEntry("control", "approvals list", "control", "look", "List the requests that wait for your answer."),
    CommandEntry("control", "approvals answer", "control", "change", "Same as `answer`.", by_id=True),
    CommandEntry("control", "fork", "control", "change", "Create a team from a version of another one.", by_id=True),
    CommandEntry("tools and trust", "tools list", "tools", "none", "List the tools for agents in this folder."),
    CommandEntry("tools and trust", "tools show", "tools", "none", "Show the description and parameters of a tool."),
    CommandEntry("tools and trust", "tools run", "tools", "make", "Call a tool yourself."),
    CommandEntry("tools and trust", "trust", "trust", "none", "Review and trust what this workspace contains."),
    CommandEntry("tools and trust", "permissions list", "trust", "none", "List your permission rules."),
    CommandEntry("tools and trust", "permissions add", "trust", "none", "Add a permission rule."),
    CommandEntry("tools and trust", "permissions remove", "trust", "none", "Remove a permission rule."),
    CommandEntry("tools and trust", "mcp add", "mcp", "none", "Check an MCP server and add it to your settings."),
    CommandEntry("tools and trust", "mcp list", "mcp", "none", "List the MCP servers of this folder."),
    CommandEntry("tools and trust", "mcp remove", "mcp", "none", "Remove one of your MCP servers."),
    CommandEntry("tools and trust", "mcp check", "mcp", "none", "Start MCP servers and check their tools for changes."),
    CommandEntry("set up", "init", "init", "none", "Find or store a key, choose models, write settings."),
    CommandEntry("set up", "models list", "models", "none", "List the models you can use, with their prices."),
    CommandEntry("set up", "models check", "models", "none", "Test a model with three small calls."),
    CommandEntry("set up", "eval live", "models", "none", "Score a model on fifteen small tasks."),
    CommandEntry("set up", "config show", "init", "none", "Show every setting and where it comes from."),
    CommandEntry("set up", "config path", "init", "none", "Show the files that settings are read from."),
    CommandEntry("set up", "agents list", "agents", "none", "List the agents you can use."),
    CommandEntry("set up", "agents show", "agents", "none", "Show the settings of an agent."),
    CommandEntry("set up", "agents new", "agents", "none", "Create the file of a new agent."),
    CommandEntry("set up", "prompt show", "agents", "none", "Show the first request of an agent to its model."),
    CommandEntry("storage", "du", "home", "look", "Show the disk space that teams take."),
    CommandEntry("storage", "gc", "home", "change", "Free disk space that is no longer needed."),
    CommandEntry("storage", "forget", "home", "change", "Delete a team and its log.", by_id=True),
)


# ------------------------------------------------------------------------------------------------ extensions of typer

EXIT_CODES_HEAD: Final = "Exit codes:"
"""Starts a help paragraph that lists exit codes, separated by semicolons."""

TYPE_SUFFIX: Final = re.compile(r" <(?:str|list\[str\])>$")
"""The Python type that typer appends to the name of a text parameter."""


class FittingFormatter(HelpFormatter):
    """Help without Python types, and with exit codes as a list."""

    def write_dl(self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write names and their meanings in two columns. A name that is too long gets its own line."""
        shown_rows = [
            (TYPE_SUFFIX.sub(" TEXT" if name.startswith("-") else "", name), meaning) for name, meaning in rows
        ]
        super().write_dl(shown_rows, col_max, col_spacing)

    def write_text(self, text: str) -> None:
        """Write paragraphs, and exit codes as a list."""
        body, has_codes, codes = text.partition(f"\n{EXIT_CODES_HEAD} ")
        super().write_text(body)
        if has_codes:
            self.write_paragraph()
            super().write_text(EXIT_CODES_HEAD)
            with self.indentation():
                entries = " ".join(codes.rstrip(".").split()).split("; ")
                self.write_dl([(code, meaning) for code, _, meaning in (entry.partition(" ") for entry in entries)])


class FittingContext(Context):
    """The context of a command that uses `FittingFormatter`."""

    formatter_class = FittingFormatter


class LenientOption(TyperOption):
    """An option that skips typer's conversion of text that is valid as typed. Its callback still runs."""

    def process_value(self, ctx: Context, value: object) -> object:
        if not ctx.resilient_parsing and not _is_valid(self, value):
            return super().process_value(ctx, value)
        return self.callback(ctx, self, value) if self.callback is not None else value


class LenientArgument(TyperArgument):
    """An argument that skips typer's conversion of text that is valid as typed."""

    def process_value(self, ctx: Context, value: object) -> object:
        return value if ctx.resilient_parsing or _is_valid(self, value) else super().process_value(ctx, value)


def _is_valid(param: TyperOption | TyperArgument, value: object) -> bool:
    """Whether the value needs no conversion: text for a text parameter, or nothing for an optional one."""
    if param.multiple or param.nargs != 1:
        return False
    if value is None:
        return not param.required
    return param.type_descriptor.annotation is str and isinstance(value, str)


class LenientCommand(TyperCommand):
    """A command whose parameters are all lenient."""

    context_class = FittingContext

    def get_params(self, ctx: Context) -> list[Parameter]:
        return make_lenient(super().get_params(ctx))


def make_lenient(params: list[Parameter]) -> list[Parameter]:
    """Make the parameters lenient in place: typer does not let us choose their classes."""
    for param in params:
        if isinstance(param, TyperOption):
            param.__class__ = LenientOption
        elif isinstance(param, TyperArgument):
            param.__class__ = LenientArgument
    return params


class RuleCommand(LenientCommand):
    """A command that takes a permission rule.

    An option of Greenroom after the first word of the rule may be meant as a part of it. Without it the rule would
    allow more, so the rule must be quoted.
    """

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse the arguments; raise `BadParameter` if an option stands inside the rule."""
        rest, words = super().parse_args(ctx, [*args]), ctx.params.get("rule") or [""]
        after_rule = args[args.index(words[0]) :] if words[0] in args and "--" not in args else []
        swallowed = next((word for word in after_rule if word in ("-q", "--quiet", "-v", "--verbose", "--home")), "")
        if swallowed:
            raise BadParameter(f"{swallowed} would not be part of the rule. Quote the whole rule.", ctx)
        return rest


# --------------------------------------------------------------------------------------------------------- the loader


def load_name(module: str, name: str) -> object:
    """Import a module of the command line and return one of its names.

    Garbage collection is off meanwhile: it would find nothing and take a tenth of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        return getattr(importlib.import_module(f"{PACKAGE}.{module}"), name)
    finally:
        if enabled:
            gc.enable()


def load_command(entry: CommandEntry) -> Callable[..., int]:
    """Return the function that typer calls. An async command gets the opened invocation as its first argument."""
    function = cast("Callable[..., int]", load_name(f"commands.{entry.module}", entry.name.replace(" ", "_")))
    signature = inspect.signature(function, eval_str=True)
    first, *options = signature.parameters.values()

    def invoke(context: typer.Context, **given: object) -> int:
        gathered = {option.name: _gather(option, given) for option in options}
        context.find_root().obj = replace(read_setup(context), command=entry.name, access=entry.access)
        if not inspect.iscoroutinefunction(function):
            return function(context, **gathered)
        run = cast("Callable[..., int]", load_name("context", "invoke"))
        return run(context, lambda cli: function(cli, **gathered))

    context = first.replace(name="context", annotation=typer.Context)
    expanded = (each for option in options for each in _expand_options(option))
    vars(invoke)["__signature__"] = signature.replace(parameters=(context, *expanded))
    invoke.__doc__ = function.__doc__
    return invoke


def _expand_options(option: inspect.Parameter) -> Iterator[inspect.Parameter]:
    if not is_dataclass(option.annotation):
        yield option
        return
    hints = get_type_hints(option.annotation, include_extras=True)
    for name, hint in hints.items():
        default = getattr(option.default, name)
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _gather(option: inspect.Parameter, given: Mapping[str, object]) -> object:
    if not is_dataclass(option.annotation):
        return given[option.name]
    make = cast("Callable[..., object]", option.annotation)
    return make(**{each.name: given[each.name] for each in _expand_options(option)})


def is_windows() -> bool:
    """Whether this system is Windows, which lacks what the log needs."""
    return os.name == "nt"


def _make_command(
    function: Callable[..., object], name: str | None = None, kind: type[TyperCommand] | None = None
) -> Command:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, cls=kind, context_settings=CONTEXT_SETTINGS)(function)
    return get_command(app)


class LazyCommand(LenientCommand):
    """A name and a line of help; the real command is loaded when it is called."""

    def __init__(self, entry: CommandEntry) -> None:
        super().__init__(entry.name.split()[-1], help=entry.help, short_help=entry.help, rich_markup_mode=None)
        self._entry = entry

    def load(self) -> Command:
        """Load the real command, with its own options and the shared ones."""
        kind = RuleCommand if self._entry.name in ("permissions add", "permissions remove") else LenientCommand
        command = _make_command(load_command(self._entry), self.name, kind)
        command.params.extend(_make_command(declare_options).params)
        return command

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: Context | None = None,
        **extra: object,
    ) -> Context:
        if is_windows():
            raise WorldFault(WINDOWS_HINT)
        if self._entry.by_id and not args and extra.get("resilient_parsing"):
            self.params = _make_command(cast("Callable[..., object]", load_name("options", "by_id"))).params
            return super().make_context(info_name, args, parent, **extra)
        return self.load().make_context(info_name, args, parent, **extra)

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """Offer the options of the real command where no ID is typed."""
        real = self.load()
        return real.shell_complete(real.make_context(ctx.info_name, [], ctx.parent, resilient_parsing=True), incomplete)


class CommandGroup(TyperGroup):
    """Commands that share their first word."""

    context_class = FittingContext

    def __init__(self, name: str) -> None:
        super().__init__(
            name=name,
            help=GROUPS[name],
            no_args_is_help=True,
            context_settings=CONTEXT_SETTINGS,
            rich_markup_mode=None,
        )

    def get_params(self, ctx: Context) -> list[Parameter]:
        """Return the shared options, made on first use: there are a dozen groups."""
        self.params = self.params or _make_command(declare_options).params
        return make_lenient(super().get_params(ctx))


class SectionedGroup(TyperGroup):
    """The root group, whose help lists its commands by section."""

    context_class = FittingContext

    def get_params(self, ctx: Context) -> list[Parameter]:
        return make_lenient(super().get_params(ctx))

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the commands before the options."""
        self.format_commands(ctx, formatter)
        records = (param.get_help_record(ctx) for param in self.get_params(ctx))
        with formatter.section(_bold("Options")):
            formatter.write_dl([record for record in records if record is not None])

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write one list per section, all with the same column width."""
        width = max(len(entry.name) for entry in COMMANDS)
        for section in SECTIONS:
            rows = [(entry.name.ljust(width), entry.help) for entry in COMMANDS if entry.section == section]
            with formatter.section(_bold(section.capitalize())):
                formatter.write_dl(rows)


def _bold(text: str) -> str:
    has_colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return typer.style(text, bold=True) if has_colour else text


# -------------------------------------------------------------------------------------------------------- the process


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        typer.echo(f"greenroom {metadata.version('greenroom')}")
        raise typer.Exit


def _root(
    _: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Declare the options of the root command."""


def build_command() -> TyperGroup:
    """Build the command line; of its commands only names and help are loaded."""
    app = typer.Typer(
        cls=SectionedGroup, rich_markup_mode=None, no_args_is_help=True, context_settings=CONTEXT_SETTINGS
    )
    app.callback(help=HELP, epilog=EPILOG)(_root)
    root = get_command(app)
    if not isinstance(root, TyperGroup):
        raise TypeError("typer did not make a group")
    root.params[:0] = _make_command(declare_options).params
    groups: dict[str, CommandGroup] = {}
    for entry in COMMANDS:
        first, _, second = entry.name.partition(" ")
        if second and first not in groups:
            groups[first] = CommandGroup(first)
            root.add_command(groups[first])
        (groups[first] if second else root).add_command(LazyCommand(entry))
    return root


def run(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name; return its exit code."""
    try:
        code = build_command().main(list(arguments), prog_name="greenroom", standalone_mode=False, obj=CommandSetup())
    except typer.TyperException as error:
        return print_error(find_output_format(arguments), Exit.USAGE, report_usage(error))
    except (typer.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    except GreenroomError as error:
        return print_error(
            find_output_format(arguments), report_error(error, verbose=_is_verbose(arguments)), error_fields(error)
        )
    except OSError as error:
        # Only a failed write to stdout gets here: all other errors are handled before.
        silence(sys.stdout)
        return Exit.BROKEN_PIPE if isinstance(error, BrokenPipeError) else report_error(StdoutFault(error))
    return code if isinstance(code, int) else Exit.DONE


def _is_verbose(arguments: Sequence[str]) -> bool:
    return "-v" in arguments or "--verbose" in arguments


def _report_bug(_: type[BaseException], error: BaseException, __: TracebackType | None) -> None:
    """Print a bug as one sentence, with -v after its traceback. Python then ends with code 1."""
    report_error(error, verbose=_is_verbose(sys.argv[1:]))


def start() -> int:
    """Run the whole process; return its exit code."""
    sys.excepthook = _report_bug
    return run(sys.argv[1:])
