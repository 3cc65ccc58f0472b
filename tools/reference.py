"""Writes docs/reference/: commands, settings, library and events, from the code. A test compares.

`python tools/reference.py` writes all four pages.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import EnumType
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Final, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from typer._click import Context
from typer.core import TyperArgument, TyperGroup

import greenroom
from greenroom.adapters.models.catalog.catalog import load_providers
from greenroom.app.settings.layers import VARIABLES
from greenroom.app.settings.schema import SERVER_KEYS, Settings
from greenroom.cli.app import SECTIONS, LazyCommand, build_command
from greenroom.cli.exit_codes import Exit
from greenroom.core.base import errors
from greenroom.core.state.events import EVENT_TYPES

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "reference"
MADE_BY: Final = "Made from the code by `python tools/reference.py`; a test compares."
Row = tuple[str, ...]


def write_table(head: Row, rows: Iterable[Row]) -> str:
    """A Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


# ------------------------------------------------------------------------------------------------------------ commands

COMMANDS_HEAD: Final = f"""# Commands

{MADE_BY} `greenroom COMMAND --help` prints the same.

An ID is the beginning of a run's id, `last` for the newest run, or RUN/TASK.
"""
EXIT_CODES: Final[Mapping[Exit, str]] = {
    Exit.DONE: "done; a change is verified, or a question answered",
    Exit.FAILED: "a check newly fails, or the command failed",
    Exit.USAGE: "wrong usage",
    Exit.CONFIG: "settings, store or machine",
    Exit.PROVIDER: "the model's provider",
    Exit.LIMIT: "a limit was reached",
    Exit.WAITING: "waits for a person, or is paused",
    Exit.UNVERIFIED: "finished, but not verified",
    Exit.HUNG_UP: "the terminal was closed",
    Exit.INTERRUPTED: "interrupted by Ctrl-C",
    Exit.BROKEN_PIPE: "the reader of a pipe is gone",
    Exit.TERMINATED: "ended by a signal",
}


def make_commands_page() -> str:
    """Every command by section, with usage, help, arguments and options."""
    root = build_command()
    context = Context(root, info_name="greenroom")
    shared = {param.name for param in root.params}
    parts = [
        COMMANDS_HEAD,
        "## Options of every command\n",
        write_table(("option", "meaning"), _options(root, context)),
    ]
    parts += ["## Exit codes\n", write_table(("code", "meaning"), ((str(int(c)), t) for c, t in EXIT_CODES.items()))]
    for section, entries in SECTIONS.items():
        parts.append(f"## {section[:1].upper()}{section[1:]}\n")
        parts += [_describe_command(root, context, entry.name, shared) for entry in entries]
    return "\n".join(parts)


def _describe_command(root: TyperGroup, context: Context, name: str, shared: set[str]) -> str:
    command, inner = cast("object", root), context
    for word in name.split():
        command = cast("TyperGroup", command).commands[word]
        inner = Context(cast("TyperGroup", command), info_name=word, parent=inner)
    assert isinstance(command, LazyCommand)
    real = command.load()
    inner = Context(real, info_name=inner.info_name, parent=inner.parent)
    usage = " ".join(real.get_usage(inner).removeprefix("Usage: ").split())
    parts = [f"### {name}\n", f"```text\n{usage}\n```\n", _format_help(real.help or "")]
    own = [param for param in real.params if param.name not in shared]
    arguments = [param for param in own if isinstance(param, TyperArgument)]
    options = [param for param in own if not isinstance(param, TyperArgument)]
    for title, params in (("argument", arguments), ("option", options)):
        records = [record for param in params if (record := param.get_help_record(inner)) is not None]
        if records:
            parts.append(write_table((title, "meaning"), (_format_option(*record) for record in records)))
    return "\n".join(parts)


def _options(root: TyperGroup, context: Context) -> Iterator[Row]:
    for param in root.get_params(context):
        record = param.get_help_record(context)
        if record is not None:
            yield _format_option(*record)


def _format_option(names: str, meaning: str) -> Row:
    return f"`{re.sub(r' <(?:str|list.str.)>$', '', names)}`", " ".join(meaning.split())


def _format_help(text: str) -> str:
    """Paragraphs; examples as a block of commands; exit codes as a list."""
    told, head, codes = inspect.cleandoc(text).partition("Exit codes: ")
    told, _, examples = told.partition("Examples:")
    parts = [paragraph.replace("\n", " ").strip() for paragraph in told.split("\n\n")]
    commands = [line.strip() for line in examples.replace("\b", "").splitlines() if line.strip()]
    if commands:
        parts.append("```text\n" + "\n".join(commands) + "\n```")
    if head:
        each = (code.partition(" ") for code in " ".join(codes.rstrip(". \n").split()).split("; "))
        parts.append("Exit codes:\n\n" + "\n".join(f"- `{code}` {meaning}" for code, _, meaning in each))
    return "\n\n".join(filter(None, parts)) + "\n"


# ------------------------------------------------------------------------------------------------------------ settings

SETTINGS_HEAD: Final = f"""# Settings

{MADE_BY} `greenroom config show` prints the values that hold here, and where each comes from.

Settings come from these places; a later one wins:

1. your file: `~/.config/greenroom/config.toml`, or the file that `$GREENROOM_CONFIG` names
2. the project: `.greenroom/config.toml`
3. the project, only for you: `.greenroom/config.local.toml`
4. environment variables
5. options of the command

`multiAgent.json` beside your file or the project's is read as `[team]`; the TOML file wins. Its root is `multiAgent`,
with camel-case keys.

Tables are merged key by key. An unknown key is an error that names the nearest known one. A project cannot set a key, a
price, a header, `web`, `browser`, `sandbox`, `mcp`, or a limit above yours.

```toml
model = "openai:gpt-5.5"

[providers.openai]
base_url = "https://llm.example.org/v1"

[limits]
cost = 2.0
time = "30m"
```

Durations are seconds, or text such as `90s`, `15m`, `2h`. Token counts are numbers, or text such as `200k`.
A limit can be `"none"`.
"""
NAMES: Final = {"prices": '"PROVIDER:MODEL"', "models": '"PROVIDER:MODEL"'}
"""How the name of an entry is written in a table of entries."""

OTHER_VARIABLES: Final[Mapping[str, str]] = {
    "GREENROOM_HOME": "the folder of the log, the same as `--home`",
    "GREENROOM_CONFIG": "your settings file",
    "GREENROOM_DEMO_PACE": "seconds that a scripted reply of `greenroom demo` takes; 0: no wait",
    "GREENROOM_CALLED_AS": "how messages name the command; `./go` sets it",
    "GREENROOM_COMMAND": "set in the environment of an agent's command: the id of this command",
}
"""Variables that are not settings."""


ITEM: Final = re.compile(r"^- `(\w+)`: (.*?)(?=^- |^\S|\Z)", re.MULTILINE | re.DOTALL)
"""An entry of a settings record's docstring: the key and its description."""

PLAIN_DEFAULT: Final = re.compile(r" ?(?:Required|Default: (?:[\w,]+|`[^`]*`))\.$")
"""The end of a description that the column of defaults repeats."""


class Setting(NamedTuple):
    """A row of the settings page."""

    key: str
    kind: str
    default: str
    meaning: str


def list_settings() -> Iterator[Setting]:
    """Every setting, with the description from its record's docstring."""
    yield from _list_fields(cast("type[msgspec.Struct]", Settings), "")


def _list_fields(kind: type[msgspec.Struct], above: str) -> Iterator[Setting]:
    hints = get_type_hints(kind, include_extras=True)
    meanings = {name: " ".join(text.split()) for name, text in ITEM.findall(inspect.getdoc(kind) or "")}
    for field in msgspec.structs.fields(kind):
        key, hint = f"{above}{field.name}", hints[field.name]
        plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        entry = get_args(plain)[1] if get_origin(plain) is Mapping and field.name != "headers" else None
        if isinstance(plain, type) and issubclass(plain, msgspec.Struct):
            yield from _list_fields(plain, f"{key}.")
        elif entry is not None and field.name == "mcp":
            keys = f"{meanings[field.name]} Keys: {', '.join(f'`{each}`' for each in SERVER_KEYS)}."
            yield Setting(f"{key}.NAME", "table", "", keys)
        elif entry is not None:
            yield from _list_fields(entry, f"{key}.{NAMES.get(field.name, 'NAME')}.")
        else:
            default = _show_default(field)
            meaning = PLAIN_DEFAULT.sub("", meanings[field.name]) if default else meanings[field.name]
            yield Setting(key, _name_type(plain), default, meaning)


def _name_type(hint: object) -> str:
    parts = [
        part for part in (get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)) if part is not NoneType
    ]
    names = {"str": "text", "int": "integer", "float": "number", "bool": "true or false", "Secret": "text"}
    found = []
    for part in parts:
        if get_origin(part) is tuple:
            found.append(f"list of {'integers' if get_args(part)[0] is int else 'texts'}")
        elif get_origin(part) is Mapping:
            found.append("table of texts")
        elif get_args(part):
            found.append(", ".join(f"`{each}`" for each in get_args(part)))
        else:
            found.append(names[cast("type", part).__name__])
    return " or ".join(found)


def _show_default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value = None if field.default is msgspec.NODEFAULT else field.default
    match value:
        case None | "" | ():
            return ""
        case bool():
            return f"`{str(value).lower()}`"
        case float():
            return f"`{value:g}`"
        case _:
            return f"`{value}`"


def make_settings_page() -> str:
    """Every setting with type, default, variable and meaning; every variable; every provider."""
    by_key = {key: variable for variable, key in VARIABLES.items()}
    rows = [(f"`{each.key}`", *each[1:]) for each in list_settings()]
    variables = [(f"`{name}`", f"sets `{key}`") for name, key in VARIABLES.items()]
    variables += [(f"`{name}`", meaning) for name, meaning in OTHER_VARIABLES.items()]
    providers = [
        (
            f"`{name}`",
            ", ".join(f"`{key}`" for key in provider.keys) or "none",
            f"`{provider.base_url}`" if provider.base_url else "required",
            f"`{provider.base_url_env}`" if provider.base_url_env else "",
        )
        for name, provider in load_providers().items()
    ]
    assert set(by_key) <= {each.key for each in list_settings()}
    return "\n".join(
        [
            SETTINGS_HEAD,
            "## All settings\n",
            write_table(("setting", "type", "default", "meaning"), rows),
            "## Environment variables\n",
            write_table(("variable", "meaning"), sorted(variables)),
            "## Providers\n",
            "The first provider with a key is used. `base_url` in your settings wins over the variable.\n",
            write_table(("provider", "variables of the key", "`base_url`", "variable of `base_url`"), providers),
        ]
    )


# ------------------------------------------------------------------------------------------------------------- library

LIBRARY_HEAD: Final = f"""# Library

`from greenroom import …`. {MADE_BY} Start with [Build agents in Python](../howto/library.md).
"""
WIDTH: Final = 100
LONGEST_DEFAULT: Final = 40
LONGEST_ALIAS: Final = 120
ROOMS: Final = {
    "app.library": "Agents, tools, runs",
    "app": "Teams and models",
    "teamwork": "Plans of teams",
    "abilities": "Skills",
    "core.rules": "Intents",
    "core.state": "State",
    "core.ports": "Ports",
    "core.base": "Amounts and errors",
}
"""Sections by package, the first that fits."""

HANDED_OUT: Final = {"Conversation", "ModelRegistry", "Run", "SyncConversation", "TeamHost", "Teams"}
"""Classes whose constructor only Greenroom calls. It is not shown."""


def make_library_page() -> str:
    """Every public name with its signature, its docstring and its methods."""
    parts = [LIBRARY_HEAD]
    types = list_types()
    left: dict[str, str] = {name: home for name, home in vars(greenroom)["_HOME"].items() if name not in types}
    for room, title in ROOMS.items():
        names = sorted(name for name, place in left.items() if place.startswith(room))
        parts.append(f"\n## {title}\n")
        if "GreenroomError" in names:
            parts.append("```text\n" + inspect.cleandoc(errors.__doc__ or "").partition("\n\n")[2] + "\n```\n")
        parts += map(_describe_name, names)
        left = {name: place for name, place in left.items() if name not in names}
    if left:
        raise SystemExit(f"These have no section: {', '.join(left)}")
    parts += ["\n## Types in signatures\n", write_table(("type", "is"), map(_describe_type, sorted(types)))]
    return "\n".join(parts)


def list_types() -> set[str]:
    """The public names that only appear in signatures of the others."""
    return {name for names in vars(greenroom)["_TYPES"].values() for name in names.split()}


def _describe_type(name: str) -> Row:
    """The first paragraph of a class's docstring, or what an alias stands for."""
    value = getattr(greenroom, name)
    if inspect.isclass(value):
        return f"`{name}`", (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")
    meaning = _shorten_names(inspect.formatannotation(getattr(value, "__supertype__", value)))
    return f"`{name}`", f"`{meaning if len(meaning) <= LONGEST_ALIAS else meaning[:LONGEST_ALIAS] + '…'}`"


def _describe_name(name: str) -> str:
    value = getattr(greenroom, name)
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return f"### {name}\n\n`{_shorten_names(str(value))}`\n"
    methods = [_describe_method(*method) for method in _find_methods(value)] if inspect.isclass(value) else []
    members = [f"{name}.{each}" for each in value.__members__] if isinstance(value, EnumType) else []
    arguments = "" if name in HANDED_OUT else _write_signature(value, WIDTH - len(name))
    call = ", ".join(members) or name + arguments
    signature = f"```text\n{call}\n```\n"
    return "\n".join(
        [f"### {name}\n", signature, inspect.getdoc(value) or "", "", *methods, *([""] if methods else [])]
    )


def _find_methods(kind: type) -> list[tuple[str, object]]:
    """The public methods that are defined in Greenroom."""
    found: dict[str, object] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("greenroom"):
            found |= {name: value for name, value in vars(base).items() if not name.startswith("_")}
    return [
        (name, value) for name, value in found.items() if inspect.isfunction(value) or isinstance(value, classmethod)
    ]


def _describe_method(name: str, value: object) -> str:
    function = value.__func__ if isinstance(value, classmethod) else value
    text = (inspect.getdoc(function) or "").partition("\n")[0]
    return f"- `{name}{_write_signature(function)}` {text}"


def _write_signature(value: object, width: int = 10_000) -> str:
    """The signature of a function or a class; one parameter per line where it is wider than `width`."""
    try:
        signature = inspect.signature(cast("Callable[..., object]", value))
    except (TypeError, ValueError):
        return ""
    parameters = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
    words = [_write_parameter(each) for each in parameters]
    kinds = [each.kind for each in parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        words.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    result = _write_annotation(signature.return_annotation)
    end = "" if result in ("None", "_empty") or inspect.isclass(value) else f" -> {result}"
    line = f"({', '.join(words)}){end}"
    return line if len(line) <= width else "(\n" + "".join(f"    {word},\n" for word in words) + f"){end}"


def _write_parameter(parameter: inspect.Parameter) -> str:
    stars: dict[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    text = stars.get(parameter.kind, "") + parameter.name
    if parameter.annotation is not inspect.Parameter.empty:
        text += f": {_write_annotation(parameter.annotation)}"
    if parameter.default is not inspect.Parameter.empty:
        default = _shorten_names(repr(parameter.default))
        text += f" = {default if len(default) <= LONGEST_DEFAULT and default[0] != '<' else '…'}"
    return text


def _write_annotation(annotation: object) -> str:
    text = annotation if isinstance(annotation, str) else str(inspect.formatannotation(annotation))
    return re.sub(r"Optional\[(\w+)\]", r"\1 | None", _shorten_names(text).replace("'", ""))


def _shorten_names(text: str) -> str:
    """The text without modules and addresses."""
    return re.sub(r"0x[0-9a-f]+|greenroom\.[\w.]+\.|typing\.|collections\.abc\.|immutables\._map\.|~", "", text)


# -------------------------------------------------------------------------------------------------------------- events

EVENTS_HEAD: Final = f"""# Events

{MADE_BY} `greenroom events last --output-format stream-json` prints them, one per line.

Every change of a team is one of these events in its log. They are never renamed: old logs always load.
"""


def make_events_page() -> str:
    """Every event by noun, with its docstring and its fields."""
    parts, noun = [EVENTS_HEAD], ""
    for name, kind in EVENT_TYPES.items():
        module = kind.__module__.rsplit(".", 1)[-1]
        if module != noun:
            noun = module
            parts.append(f"## {noun.capitalize()}\n")
        text = _docstring(kind)
        hints = get_type_hints(kind)
        rows = [
            (f"`{field.name}`", f"`{_name_field_type(hints[field.name])}`", _show_default(field))
            for field in msgspec.structs.fields(cast("type[msgspec.Struct]", kind))
        ]
        parts += [f"### {name}\n", *([f"{text}\n"] if text else []), write_table(("field", "type", "default"), rows)]
    return "\n".join(parts)


def _docstring(kind: type) -> str:
    own = vars(kind).get("__doc__")
    return inspect.cleandoc(own) if isinstance(own, str) else ""


def _name_field_type(hint: object) -> str:
    text = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
    text = re.sub(
        r"typing\.|collections\.abc\.|immutables\._map\.|(?:greenroom\.)[\w.]*\.|<class '([\w.]+)'>", r"\1", text
    )
    return re.sub(r"Optional\[(\w+)\]", r"\1 | None", text)


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "cli.md": make_commands_page,
    "settings.md": make_settings_page,
    "library.md": make_library_page,
    "events.md": make_events_page,
}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for page, make in PAGES.items():
        (FOLDER / page).write_text(make(), encoding="utf-8")
        sys.stdout.write(f"docs/reference/{page}\n")
