"""The command line: the table of commands, the loader, and the entry point.

`greenroom --help` imports only this file and what it needs.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import os
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

from greenroom.app.messages import translate
from greenroom.cli.errors import StdoutFault, error_fields, find_output_format, print_error, report_error, report_usage
from greenroom.cli.exit_codes import EXIT_MEANINGS, Exit
from greenroom.cli.help import PlainContext, bold, parse_help, write_body, write_examples, write_exit_codes, write_list
from greenroom.cli.process import silence
from greenroom.cli.setup import Access, CommandSetup, declare_options, read_setup
from greenroom.core.base.errors import GreenroomError, WorldFault

if TYPE_CHECKING:
    from typer._click import Command, Parameter
    from typer._click.shell_completion import CompletionItem

TAGLINE: Final = "A team of AI agents that you can trust with real work."
ID_HELP: Final = "An ID is the start of a run's id, `last` for the newest run, or RUN/TASK."
DAILY_OPTIONS: Final = "--output-format FORMAT  --quiet  --verbose  --version  --help"
DAILY_POINTER: Final = "greenroom help COMMAND; every command: greenroom help --all"
WINDOWS_HINT: Final = (
    "Greenroom runs on Linux and macOS. On Windows use WSL2: run `wsl --install`, then install Greenroom inside it."
)
CONTEXT_SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
PACKAGE: Final = "greenroom.cli"

# ---------------------------------------------------------------------------------------------------------- the table

DAILY: Final = {
    "Start": ("run", "ask", "chat", "demo", "init", "doctor"),
    "Changes": ("diff", "apply", "undo", "branch", "discard"),
    "Watch and steer": ("runs", "show", "events", "answer", "send", "resume", "cancel"),
    "Organisations": ("org", "inbox"),
}
"""The commands and groups that `greenroom --help` shows, by section."""

RENAMED: Final = {"team": "org", "talk": "inbox", "tell": "send", "tasks": "runs"}
"""Old names of commands."""

GROUPS: Final = {
    "agents": "List, show and create agents.",
    "skills": "List, show and copy skills.",
    "memory": "List, search, merge, export and import what agents remember.",
    "prompt": "Show what models are sent.",
    "models": "List and check models.",
    "eval": "Evaluate a model.",
    "config": "Show the settings and their files.",
    "approvals": "List and answer approval requests.",
    "artifacts": "List, show, compare, export and restore artifacts.",
    "workspaces": "List and remove the worktrees of runs.",
    "tools": "List, show and call tools.",
    "permissions": "List, add and remove permission rules.",
    "mcp": "List, add, check and remove MCP servers.",
    "org": "Create, run and stop organisations of agents.",
}
"""Help of command groups, by the first word of their commands."""


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command: the function of this name in `commands.MODULE`, or `function` if that name is taken.

    `help` is the first line of its docstring. With `by_id` its first argument is an ID, which a shell completes without
    loading the command.
    """

    name: str
    module: str
    access: Access
    help: str
    by_id: bool = False
    function: str = ""


SECTIONS: Final[Mapping[str, Sequence[CommandEntry]]] = {
    "Start": (
        CommandEntry("run", "run", "make", "Give an agent a task; decide about its change."),
        CommandEntry("batch", "batch", "make", "Do the same task for many files, several at once."),
        CommandEntry("plan", "plan", "make", "Analyse a task and plan its team; start nothing."),
        CommandEntry("ask", "run", "make", "Ask a model a question; print its answer."),
        CommandEntry("chat", "chat", "make", "Chat with an agent, or resume a chat."),
        CommandEntry("research", "research", "make", "Research a question on the web; write a report with sources."),
        CommandEntry("serve", "serve", "make", "Serve the page and the HTTP API on this machine."),
        CommandEntry("demo", "demo", "none", "Watch a run from request to undo; needs no key."),
        CommandEntry("init", "init", "none", "Find or store a key, choose models, write settings."),
        CommandEntry("doctor", "home", "none", "Check this machine and the log for problems."),
        CommandEntry("help", "help", "none", "Show the help of a command, or every command.", function="show_help"),
    ),
    "Changes": (
        CommandEntry("diff", "change", "look", "Print the change of a run as a patch.", by_id=True),
        CommandEntry("apply", "change", "act", "Apply the change of a run in your name.", by_id=True),
        CommandEntry("undo", "change", "act", "Undo an applied change, byte for byte.", by_id=True),
        CommandEntry("branch", "change", "act", "Put the change of a run on a new branch.", by_id=True),
        CommandEntry("discard", "change", "act", "Delete the worktree of a run.", by_id=True),
        CommandEntry("rewind", "control", "change", "Continue from an earlier step as a new run.", by_id=True),
        CommandEntry("blame", "change", "look", "Show which step wrote a line, and why."),
        CommandEntry("workspaces list", "home", "none", "List the worktrees of runs."),
        CommandEntry("workspaces clean", "home", "change", "Remove worktrees that hold no unapplied work."),
    ),
    "Watch and steer": (
        CommandEntry("runs", "runs", "look", "List runs and their tasks, newest first."),
        CommandEntry("show", "runs", "look", "Show a run: tasks, agents, messages, costs.", by_id=True),
        CommandEntry(
            "compare", "compare", "look", "Compare finished runs of one request; say which to take.", by_id=True
        ),
        CommandEntry("report", "plan", "change", "Report what a team did, and what was not verified.", by_id=True),
        CommandEntry("events", "runs", "look", "Print the events of a run; --follow keeps watching.", by_id=True),
        CommandEntry("replay", "runs", "look", "Replay a run, or show its state at a version.", by_id=True),
        CommandEntry("cost", "runs", "act", "Show the cost of runs, agents or models.", by_id=True),
        CommandEntry("answer", "approvals", "change", "Answer an approval request or a question.", by_id=True),
        CommandEntry("approvals list", "approvals", "look", "List the requests that wait for your answer."),
        CommandEntry(
            "approvals answer", "approvals", "change", "Answer an approval request or a question.", by_id=True
        ),
        CommandEntry(
            "conflicts",
            "conflicts",
            "change",
            "Show the conflicts of a team run, and settle those that wait.",
            by_id=True,
        ),
        CommandEntry(
            "artifacts list", "artifacts", "look", "List the artifacts of a run with every version.", by_id=True
        ),
        CommandEntry("artifacts show", "artifacts", "look", "Print an artifact with its sources.", by_id=True),
        CommandEntry(
            "artifacts diff",
            "artifacts",
            "look",
            "Show what changed between two versions of an artifact.",
            by_id=True,
        ),
        CommandEntry(
            "artifacts export",
            "artifacts",
            "look",
            "Write artifacts to files, with their sources at the end.",
            by_id=True,
        ),
        CommandEntry("artifacts restore", "artifacts", "change", "Go back to a version of an artifact.", by_id=True),
        CommandEntry("send", "control", "change", "Send a message to the agent that works on a run.", by_id=True),
        CommandEntry("pause", "control", "change", "Pause a run or one of its tasks.", by_id=True),
        CommandEntry("resume", "control", "change", "Resume a run; run it here if no process does.", by_id=True),
        CommandEntry("replan", "plan", "change", "Change the plan of a team that runs or is paused.", by_id=True),
        CommandEntry("cancel", "control", "change", "Cancel a run or one of its tasks.", by_id=True),
        CommandEntry("fork", "control", "change", "Create a run from a version of another one.", by_id=True),
    ),
    "Organisations": (
        CommandEntry("org new", "org", "look", "Create the file of a new organisation."),
        CommandEntry("org start", "org", "make", "Run an organisation until Ctrl-C."),
        CommandEntry("org status", "org", "look", "Show the status of an organisation."),
        CommandEntry("org list", "org", "look", "List the organisations and what runs them."),
        CommandEntry("org dismiss", "org", "change", "Remove an agent or a person for good."),
        CommandEntry("org stop", "org", "change", "Stop an organisation, here or in another terminal."),
        CommandEntry("inbox", "org", "make", "Open your inbox in an organisation."),
    ),
    "Agents and models": (
        CommandEntry("agents list", "agents", "look", "List the agents you can use."),
        CommandEntry("agents show", "agents", "look", "Show the settings of an agent."),
        CommandEntry("agents new", "agents", "none", "Create the file of a new agent."),
        CommandEntry("prompt show", "agents", "none", "Show the first request of an agent to its model."),
        CommandEntry("skills list", "skills", "none", "List the skills that agents can get here."),
        CommandEntry("skills show", "skills", "none", "Show a skill: its folder, its files and its text."),
        CommandEntry("skills sync", "skills", "none", "Copy the skills of the repositories in your settings."),
        CommandEntry("memory list", "memory", "none", "List what agents remember here."),
        CommandEntry("memory search", "memory", "none", "Search what agents remember here."),
        CommandEntry("memory show", "memory", "none", "Show a memory."),
        CommandEntry("memory organize", "memory", "none", "Merge memories that share tags."),
        CommandEntry("memory export", "memory", "none", "Write memories to a JSON file."),
        CommandEntry("memory import", "memory", "none", "Read memories from a JSON file."),
        CommandEntry("models list", "models", "none", "List the models you can use, with their prices."),
        CommandEntry("models check", "models", "none", "Test a model with three small calls."),
        CommandEntry("eval live", "models", "none", "Score a model on fifteen small tasks."),
    ),
    "Tools and trust": (
        CommandEntry("tools list", "tools", "none", "List the tools for agents in this folder."),
        CommandEntry("tools show", "tools", "none", "Show the description and parameters of a tool."),
        CommandEntry("tools run", "tools", "make", "Call a tool yourself."),
        CommandEntry("trust", "trust", "none", "Review and trust what this workspace contains."),
        CommandEntry("permissions list", "trust", "none", "List your permission rules."),
        CommandEntry("permissions add", "trust", "none", "Add a permission rule."),
        CommandEntry("permissions remove", "trust", "none", "Remove a permission rule."),
        CommandEntry("mcp add", "mcp", "none", "Check an MCP server and add it to your settings."),
        CommandEntry("mcp list", "mcp", "none", "List the MCP servers of this folder."),
        CommandEntry("mcp remove", "mcp", "none", "Remove one of your MCP servers."),
        CommandEntry("mcp check", "mcp", "none", "Start MCP servers and check their tools for changes."),
    ),
    "Settings and storage": (
        CommandEntry("config show", "init", "none", "Show every setting and where it comes from."),
        CommandEntry("config path", "init", "none", "Show the files that settings are read from."),
        CommandEntry("du", "home", "look", "Show the disk space that runs take."),
        CommandEntry("gc", "home", "change", "Free disk space that is no longer needed."),
        CommandEntry("forget", "home", "change", "Delete a run and its log.", by_id=True),
    ),
}
COMMANDS: Final = tuple(entry for entries in SECTIONS.values() for entry in entries)


# ------------------------------------------------------------------------------------------------ extensions of typer


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
    if value is None:
        return not param.required
    if param.multiple or param.nargs != 1:
        return False
    return param.type_descriptor.annotation is str and isinstance(value, str)


class LenientCommand(TyperCommand):
    """A command whose parameters are all lenient."""

    context_class = PlainContext

    def get_params(self, ctx: Context) -> list[Parameter]:
        return make_lenient(super().get_params(ctx))

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write what the command does, examples, options and exit codes."""
        text, examples, exit_codes = parse_help(self.help or "")
        self.format_usage(ctx, formatter)
        write_body(formatter, text)
        write_examples(formatter, examples)
        self.format_options(ctx, formatter)
        write_exit_codes(formatter, exit_codes)


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
            raise BadParameter(translate("trust.quote_rule", option=swallowed), ctx)
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
    function = cast(
        "Callable[..., int]", load_name(f"commands.{entry.module}", entry.function or entry.name.replace(" ", "_"))
    )
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
        command = self.load()
        if self._entry.access != "none" and not {"-h", "--help"} & {*args}:
            cast("Callable[[], object]", load_name("context", "use_language_of"))()  # for errors in the arguments
        return command.make_context(info_name, args, parent, **extra)

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """Offer the options of the real command where no ID is typed."""
        real = self.load()
        return real.shell_complete(real.make_context(ctx.info_name, [], ctx.parent, resilient_parsing=True), incomplete)


class CommandGroup(TyperGroup):
    """Commands that share their first word."""

    context_class = PlainContext

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

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the commands, the options, and where to find examples."""
        write_list(formatter, "Commands", ((str(name), str(command.help)) for name, command in self.commands.items()))
        write_list(formatter, "Options", filter(None, (param.get_help_record(ctx) for param in self.get_params(ctx))))
        write_body(formatter, f"Examples and exit codes: greenroom {self.name} COMMAND --help")


class RootGroup(TyperGroup):
    """The root group. Its help shows the daily commands; `format_all` shows every command."""

    context_class = PlainContext

    def get_params(self, ctx: Context) -> list[Parameter]:
        return make_lenient(super().get_params(ctx))

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """Find the command that the arguments name; raise `TyperException` if there is none."""
        new = RENAMED.get(args[0])
        if new is not None and not ctx.resilient_parsing:
            raise typer.TyperException(f"`greenroom {args[0]}` is now `greenroom {new}`.")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the daily commands: one screen."""
        lines = {**{entry.name: entry.help for entry in COMMANDS}, **GROUPS}
        width = max(map(len, DAILY)) + 2
        self.format_usage(ctx, formatter)
        formatter.write(f"\n{TAGLINE}\n")
        for section, names in DAILY.items():
            formatter.write("\n")
            for index, name in enumerate(names):
                title = bold(section) + " " * (width - len(section)) if index == 0 else " " * width
                formatter.write(f"{title}{name:9}{lines[name]}\n")
        formatter.write("\n")
        for title, line in (("Options", DAILY_OPTIONS), ("More", DAILY_POINTER)):
            formatter.write(f"{bold(title)}{' ' * (width - len(title))}{line}\n")

    def format_all(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write every command by section, the shared options, and the exit codes."""
        self.format_usage(ctx, formatter)
        write_body(formatter, f"{TAGLINE}\n\n{ID_HELP}")
        width = max(len(entry.name) for entry in COMMANDS)
        for section, entries in SECTIONS.items():
            write_list(formatter, section, ((entry.name.ljust(width), entry.help) for entry in entries))
        write_list(formatter, "Options", filter(None, (param.get_help_record(ctx) for param in self.get_params(ctx))))
        write_exit_codes(formatter, EXIT_MEANINGS.items())


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
    app = typer.Typer(cls=RootGroup, rich_markup_mode=None, no_args_is_help=True, context_settings=CONTEXT_SETTINGS)
    app.callback(help=TAGLINE)(_root)
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
