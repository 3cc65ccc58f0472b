"""The command line: the table of its commands, how each is loaded when it is used, and how it ends.

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

from greenroom.cli.errors import Unheard, fields, format_of, report, told, usage
from greenroom.cli.exit_codes import Exit
from greenroom.cli.process import hush
from greenroom.cli.setup import Access, Setup, setup_of, shared
from greenroom.core.base.errors import GreenroomError, WorldFault

if TYPE_CHECKING:
    from typer._click import Command, Parameter
    from typer._click.shell_completion import CompletionItem

HELP: Final = """A team of AI agents that you can trust with real work.

An ID is the beginning of a team's id, `last` for the newest team, or TEAM/TASK."""
EPILOG: Final = (
    "Exit codes: 0 done, 1 failed, 2 usage, 3 config or store, 4 provider, 5 limit, 6 waiting for a person, "
    "7 finished but not verified."
)
WINDOWS: Final = (
    "Greenroom runs on Linux and macOS. On Windows use WSL2: run `wsl --install`, then install Greenroom inside it."
)
SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
PACKAGE: Final = "greenroom.cli"

# ---------------------------------------------------------------------------------------------------------- the table

SECTIONS: Final = ("begin", "organise", "take over", "look", "steer", "allow", "set up", "keep")
GROUPS: Final = {
    "agents": "The agents that files describe.",
    "prompt": "What models are asked with.",
    "models": "The models that can be asked.",
    "eval": "How well a model works here.",
    "config": "The settings that hold here.",
    "approvals": "What agents may not do without you.",
    "workspaces": "The copies in which jobs are done.",
    "tools": "The tools that agents can have.",
    "permissions": "What you have agreed to for good.",
    "mcp": "The MCP servers that agents have tools from.",
    "team": "Organisations: people, managers, and agents that plan.",
}
"""The first words of commands that have two."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A command: the function of its name in `commands.MODULE`. The first argument of one that is `by_id` is an ID,
    which a shell completes without loading the command."""

    section: str
    name: str
    module: str
    access: Access
    help: str
    by_id: bool = False


ENTRIES: Final = (
    Entry("begin", "demo", "demo", "none", "Watch a job from the request to the undo; needs no key."),
    Entry("begin", "ask", "run", "make", "Ask a model; the answer comes on stdout."),
    Entry("begin", "run", "run", "make", "Give an agent something to do; its answer comes on stdout."),
    Entry("begin", "chat", "chat", "make", "Talk with an agent; go on with it later."),
    Entry("begin", "doctor", "home", "none", "Check this machine and the log, and say what to do."),
    Entry("organise", "team new", "team", "look", "Write the file of a new organisation."),
    Entry("organise", "team start", "team", "make", "Let an organisation work, until Ctrl-C."),
    Entry("organise", "team status", "team", "look", "How it stands; --type has all its states."),
    Entry("organise", "team list", "team", "look", "The organisations here, and who runs them."),
    Entry("organise", "team dismiss", "team", "change", "Let somebody go, for good."),
    Entry("organise", "team stop", "team", "change", "Stop one, also in another terminal."),
    Entry("organise", "talk", "team", "make", "Your inbox in an organisation: read, answer, ask."),
    Entry("take over", "diff", "change", "look", "What a job changed, as a patch.", by_id=True),
    Entry("take over", "apply", "change", "look", "Bring what a job changed to your files, as one commit.", by_id=True),
    Entry("take over", "branch", "change", "look", "Put what a job changed on a new branch.", by_id=True),
    Entry("take over", "discard", "change", "look", "Drop the copy in which a job was done.", by_id=True),
    Entry("take over", "undo", "change", "look", "Take back what was applied, byte for byte.", by_id=True),
    Entry("take over", "rewind", "control", "change", "Go back to a step with files and talk, and go on.", by_id=True),
    Entry("take over", "blame", "change", "look", "Which step wrote a line, why, and what proves it."),
    Entry("take over", "workspaces list", "home", "none", "The copies in which jobs are done."),
    Entry("take over", "workspaces clean", "home", "look", "Take copies away that hold no work."),
    Entry("look", "tasks", "tasks", "look", "List what was and is being worked on."),
    Entry("look", "show", "tasks", "look", "Show a team: tasks, agents, messages, costs.", by_id=True),
    Entry("look", "events", "tasks", "look", "Print what happened; --follow to watch it happen.", by_id=True),
    Entry("look", "replay", "tasks", "look", "Tell the story again, or what was true at any version.", by_id=True),
    Entry("look", "cost", "tasks", "look", "What runs, agents or models have cost.", by_id=True),
    Entry("steer", "pause", "control", "change", "Start nothing new.", by_id=True),
    Entry("steer", "resume", "control", "change", "Go on; a team that nobody runs is run here.", by_id=True),
    Entry("steer", "tell", "control", "change", "Say something to whoever works on it.", by_id=True),
    Entry("steer", "cancel", "control", "change", "End the work; what runs is stopped.", by_id=True),
    Entry("steer", "answer", "control", "change", "Say yes or no to a step that waits for you.", by_id=True),
    Entry("steer", "approvals list", "control", "look", "All questions that wait for you."),
    Entry("steer", "approvals answer", "control", "change", "The same as `answer`.", by_id=True),
    Entry("steer", "fork", "control", "change", "Begin a new team from any moment of an old one.", by_id=True),
    Entry("allow", "tools list", "tools", "none", "The tools that agents can have here."),
    Entry("allow", "tools show", "tools", "none", "What models are told of a tool."),
    Entry("allow", "tools run", "tools", "make", "Call a tool yourself."),
    Entry("allow", "trust", "trust", "none", "See what this workspace brings, and agree to it."),
    Entry("allow", "permissions list", "trust", "none", "The rules that you have agreed to."),
    Entry("allow", "permissions add", "trust", "none", "Agree to a rule for good."),
    Entry("allow", "permissions remove", "trust", "none", "Remove a rule."),
    Entry("allow", "mcp add", "mcp", "none", "Look at an MCP server and add it to yours."),
    Entry("allow", "mcp list", "mcp", "none", "The MCP servers here, and whose each is."),
    Entry("allow", "mcp remove", "mcp", "none", "Remove one of your MCP servers."),
    Entry("allow", "mcp check", "mcp", "none", "Start MCP servers and see what has changed."),
    Entry("set up", "init", "init", "none", "Find or store a key, choose models, write the settings."),
    Entry("set up", "models list", "models", "none", "The models at hand: window, tools, price."),
    Entry("set up", "models check", "models", "none", "Try a model with three tiny calls."),
    Entry("set up", "eval live", "models", "none", "Play fifteen small tasks with a model; say how it did."),
    Entry("set up", "config show", "init", "none", "Every setting, and where it comes from."),
    Entry("set up", "config path", "init", "none", "The files that are looked at."),
    Entry("set up", "agents list", "agents", "none", "The agents at hand, and where each is from."),
    Entry("set up", "agents show", "agents", "none", "All that is known of an agent."),
    Entry("set up", "agents new", "agents", "none", "Write a file for a new agent."),
    Entry("set up", "prompt show", "agents", "none", "The exact request that an agent makes first."),
    Entry("keep", "du", "home", "look", "How much room the teams take."),
    Entry("keep", "gc", "home", "change", "Give back the room that nothing needs."),
    Entry("keep", "forget", "home", "change", "Delete a team and all that was logged of it.", by_id=True),
)


# ------------------------------------------------------------------------------------- what typer does not do by itself

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


# --------------------------------------------------------------------------------------------------------- the loader


def load(module: str, name: str) -> object:
    """A name of a module of the command line, imported now. The garbage collector rests meanwhile: it would find none,
    and takes a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        return getattr(importlib.import_module(f"{PACKAGE}.{module}"), name)
    finally:
        if enabled:
            gc.enable()


def load_command(entry: Entry) -> Callable[..., int]:
    """The function that typer calls. One that is async gets the opened invocation as its first argument."""
    function = cast("Callable[..., int]", load(f"commands.{entry.module}", entry.name.replace(" ", "_")))
    signature = inspect.signature(function, eval_str=True)
    first, *options = signature.parameters.values()

    def invoke(context: typer.Context, **given: object) -> int:
        gathered = {option.name: _gather(option, given) for option in options}
        context.find_root().obj = replace(setup_of(context), command=entry.name, access=entry.access)
        if not inspect.iscoroutinefunction(function):
            return function(context, **gathered)
        run = cast("Callable[..., int]", load("context", "invoke"))
        return run(context, lambda cli: function(cli, **gathered))

    context = first.replace(name="context", annotation=typer.Context)
    spelt = (each for option in options for each in _spell_out(option))
    vars(invoke)["__signature__"] = signature.replace(parameters=(context, *spelt))
    invoke.__doc__ = function.__doc__
    return invoke


def _spell_out(option: inspect.Parameter) -> Iterator[inspect.Parameter]:
    """The options that a parameter stands for: one, or each field of a dataclass such as `RunOptions`."""
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
    return make(**{each.name: given[each.name] for each in _spell_out(option)})


def on_windows() -> bool:
    """Whether this is a system without what the log needs."""
    return os.name == "nt"


def _made(function: Callable[..., object], name: str | None = None, kind: type[TyperCommand] | None = None) -> Command:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, cls=kind, context_settings=SETTINGS)(function)
    return get_command(app)


class LazyCommand(LenientCommand):
    """A name and a line of help; the real command takes over when it is called."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(entry.name.split()[-1], help=entry.help, short_help=entry.help, rich_markup_mode=None)
        self._entry = entry

    def real(self) -> Command:
        """The real command, with its own options and the shared ones."""
        kind = RuleCommand if self._entry.name in ("permissions add", "permissions remove") else LenientCommand
        command = _made(load_command(self._entry), self.name, kind)
        command.params.extend(_made(shared).params)
        return command

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: Context | None = None,
        **extra: object,
    ) -> Context:
        if on_windows():
            raise WorldFault(WINDOWS)
        if self._entry.by_id and not args and extra.get("resilient_parsing"):
            self.params = _made(cast("Callable[..., object]", load("options", "by_id"))).params
            return super().make_context(info_name, args, parent, **extra)
        return self.real().make_context(info_name, args, parent, **extra)

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """What a shell offers where no ID is typed: the real command's options."""
        real = self.real()
        return real.shell_complete(real.make_context(ctx.info_name, [], ctx.parent, resilient_parsing=True), incomplete)


class Family(TyperGroup):
    """The commands that share their first word."""

    context_class = FittingContext

    def __init__(self, name: str) -> None:
        super().__init__(
            name=name,
            help=GROUPS[name],
            no_args_is_help=True,
            context_settings=SETTINGS,
            rich_markup_mode=None,
        )

    def get_params(self, ctx: Context) -> list[Parameter]:
        """The shared options, made when this family is named, of which there are a dozen."""
        self.params = self.params or _made(shared).params
        return lenient(super().get_params(ctx))


class Sections(TyperGroup):
    """A group whose help lists its commands by what people want to do."""

    context_class = FittingContext

    def get_params(self, ctx: Context) -> list[Parameter]:
        return lenient(super().get_params(ctx))

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """What one can do comes before how."""
        self.format_commands(ctx, formatter)
        records = (param.get_help_record(ctx) for param in self.get_params(ctx))
        with formatter.section(_bold("Options")):
            formatter.write_dl([record for record in records if record is not None])

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """One list per section, all with the same columns."""
        width = max(len(entry.name) for entry in ENTRIES)
        for section in SECTIONS:
            rows = [(entry.name.ljust(width), entry.help) for entry in ENTRIES if entry.section == section]
            with formatter.section(_bold(section.capitalize())):
                formatter.write_dl(rows)


def _bold(text: str) -> str:
    wanted = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return typer.style(text, bold=True) if wanted else text


# -------------------------------------------------------------------------------------------------------- the process


def _say_version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        typer.echo(f"greenroom {metadata.version('greenroom')}")
        raise typer.Exit


def _root(
    _: Annotated[
        bool, typer.Option("--version", help="Say which version this is.", callback=_say_version, is_eager=True)
    ] = False,
) -> None:
    """The options of the command itself."""


def command() -> TyperGroup:
    """The whole command line; of its commands only names and help."""
    app = typer.Typer(cls=Sections, rich_markup_mode=None, no_args_is_help=True, context_settings=SETTINGS)
    app.callback(help=HELP, epilog=EPILOG)(_root)
    root = get_command(app)
    if not isinstance(root, TyperGroup):
        raise TypeError("typer made no group")
    root.params[:0] = _made(shared).params
    families: dict[str, Family] = {}
    for entry in ENTRIES:
        first, _, second = entry.name.partition(" ")
        if second and first not in families:
            families[first] = Family(first)
            root.add_command(families[first])
        (families[first] if second else root).add_command(LazyCommand(entry))
    return root


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments say; returns the exit code."""
    try:
        code = command().main(list(arguments), prog_name="greenroom", standalone_mode=False, obj=Setup())
    except typer.TyperException as error:
        return told(format_of(arguments), Exit.USAGE, usage(error))
    except (typer.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    except GreenroomError as error:
        return told(format_of(arguments), report(error, verbose=_verbose(arguments)), fields(error))
    except OSError as error:
        # Only what is written to stdout gets here: everything else is called by its name before.
        hush(sys.stdout)
        return Exit.BROKEN_PIPE if isinstance(error, BrokenPipeError) else report(Unheard(error))
    return code if isinstance(code, int) else Exit.DONE


def _verbose(arguments: Sequence[str]) -> bool:
    return "-v" in arguments or "--verbose" in arguments


def _report_bug(_: type[BaseException], error: BaseException, __: TracebackType | None) -> None:
    """One sentence, and the traceback for those who ask for it. Python then ends with code 1."""
    report(error, verbose=_verbose(sys.argv[1:]))


def start() -> int:
    """The whole process; returns its exit code."""
    sys.excepthook = _report_bug
    return run(sys.argv[1:])
