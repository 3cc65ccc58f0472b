"""Settings from all sides, and where each comes from: flags > environment > local > project > user > defaults.

Tables are merged key by key; lists and single values replace. Each layer is checked alone, so a fault names its source.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from typing import Final, Literal, cast, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec

from greenroom.adapters.mcp.configuration import Server, masked
from greenroom.adapters.models.catalog.catalog import providers, split, unknown
from greenroom.app.settings.home import config_folder
from greenroom.app.settings.keys import keys_file, refuse_open
from greenroom.app.settings.schema import (
    ROLES,
    Caps,
    Key,
    Raw,
    Settings,
    as_table,
    checked,
    dotted,
    read_toml,
)
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record

OWN: Final = ("key", "key_env", "headers")
PERSONAL: Final[Mapping[str, str]] = {
    "web": "decides who reads what you search for, and what is reached",
    "browser": "decides which program is started, and what it reaches",
    "after_tool_call": "names code that would be run",
    "sandbox": "decides which walls are around commands, and what those reach",
    "non_interactive": "decides whether you are asked at all",
    "approvals_expire": "decides how long you have for an answer",
}
"""Settings that only the person's own file may hold, and why."""


def refuse_strangers(raw: Raw, source: str, yours: Raw, user_file: str) -> None:
    """`WorldFault` for the first thing that a project may not set. `yours` is what the user's file says."""
    if "mcp" in raw:
        raise WorldFault(
            f"{source}: a project may not set `mcp`, because it decides which programs are started. "
            "Put it into .mcp.json, which `greenroom trust` shows to whoever uses the project."
        )
    for key, why in PERSONAL.items():
        if key in raw:
            raise refused(source, (key,), why, user_file)
    _refuse_spending(raw, source, as_table(yours.get("limits", {})), user_file)
    _refuse_providers(raw, source, as_table(yours.get("providers", {})), user_file)
    if raw.get("execute_tool_confirm") is False:  # it may want more to be asked, never less
        raise refused(source, ("execute_tool_confirm",), "decides what you are asked", user_file)


def _refuse_spending(raw: Raw, source: str, yours: Raw, user_file: str) -> None:
    """A project may lower a cap, and not raise one; nor say that something dear costs little."""
    if "prices" in raw:
        raise refused(source, ("prices",), "decides when your money is spent", user_file)
    said, usual = as_table(raw.get("limits", {})), {"cost": Caps().cost}
    for key, value in said.items():
        cap = yours[key] if key in yours else usual.get(key)
        if cap is not None and (value is None or cast("float", value) > cast("float", cap)):
            raise refused(source, ("limits", key), f"is more than your own cap of {cap:g}", user_file)


def _refuse_providers(raw: Raw, source: str, yours: Collection[str], user_file: str) -> None:
    for name, table in as_table(raw.get("providers", {})).items():
        said = as_table(table)
        for key in OWN:
            if key in said:
                secret = "is a secret" if key == "key" else "decides what is sent with your requests"
                raise refused(source, ("providers", name, key), secret, user_file)
        if "base_url" in said and not harmless(name, str(said["base_url"]), yours):
            where = ("providers", name, "base_url")
            raise refused(source, where, "would send your key and your words there", user_file)


def harmless(name: str, base_url: str, yours: Collection[str]) -> bool:
    """Whether a project may say where a provider is: on this machine, and for none that the person has a key for."""
    known = providers().get(name)
    theirs = name in yours or (known is not None and not known.local)
    return not theirs and on_this_machine(urlsplit(base_url).hostname or "")


def on_this_machine(host: str) -> bool:
    """Whether a host is the loopback interface."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def refused(source: str, key: Key, why: str, user_file: str) -> WorldFault:
    """What, which, what to do."""
    return WorldFault(
        f"{source}: a project may not set `{dotted(key)}`, because it {why}. "
        f"If you want it, put it into the user's file {user_file}."
    )


OriginOf = Callable[[str], str]


def check_names(settings: Settings, origin: OriginOf) -> None:
    """`WorldFault` for the first name that means nothing, with where it stands."""
    for name, told in settings.providers.items():
        if name not in providers() and not told.base_url:
            fault = unknown(name, providers())
            raise WorldFault(f"`providers.{name}`: {fault} One of your own needs a `base_url`.")
    for name, group in settings.groups.items():
        check_group(settings, name, group.models, origin(f"groups.{name}.models"))
    for key in ("model", *ROLES):
        value: str = getattr(settings, key)
        if value:
            check_model(settings, key, value, origin(key))
    for name in settings.prices:
        check_full(settings, f'prices."{name}"', name, origin(f"prices.{name}.input"))


def check_group(settings: Settings, name: str, models: tuple[str, ...], where: str) -> None:
    """A group has a name of its own, and models that are written in full."""
    if name in ROLES or ":" in name or not name.strip():
        raise WorldFault(f"{where}: a group cannot be called {name!r}. Give it another name.")
    for model in models:
        check_full(settings, f"groups.{name}.models", model, where)


def check_model(settings: Settings, key: str, value: str, where: str) -> None:
    """A model is written in full, or names a group, or (the normal one) a role."""
    also = (*settings.groups, *(ROLES if key == "model" else ()))
    if value in also:
        return
    near = get_close_matches(value, also, n=1)
    if ":" not in value and near:
        raise WorldFault(f"{where}: `{key}` names {value!r}, which is no group. Did you mean `{near[0]}`?")
    check_full(settings, key, value, where)


def check_full(settings: Settings, key: str, value: str, where: str) -> None:
    """It is `provider:model`, of a provider that there is."""
    try:
        split(value, also=settings.providers)
    except WorldFault as fault:
        raise WorldFault(f"{where}: `{key}`: {fault}") from None


USER_FILE: Final = "GREENROOM_CONFIG"
FOLDER: Final = ".greenroom"
SHARED: Final = 0o1002
VARIABLES: Final[Mapping[str, str]] = {
    "GREENROOM_MODEL": "model",
    "GREENROOM_STRONG": "strong",
    "GREENROOM_FAST": "fast",
    "GREENROOM_MAX_COST": "limits.cost",
    "GREENROOM_MAX_TOKENS": "limits.tokens",
    "GREENROOM_MAX_TIME": "limits.time",
    "GREENROOM_LANGUAGE": "language",
    "GREENROOM_AFTER_TOOL_CALL": "after_tool_call",
    "GREENROOM_EXECUTE_TOOL_CONFIRM": "execute_tool_confirm",
    "GREENROOM_NON_INTERACTIVE": "non_interactive",
    "GREENROOM_APPROVALS_EXPIRE": "approvals_expire",
    "GREENROOM_SANDBOX": "sandbox.walls",
}
FLAGS: Final[Mapping[str, str]] = {
    "limits.cost": "--max-cost",
    "limits.tokens": "--max-tokens",
    "limits.time": "--max-time",
}
Layer = Literal["flag", "environment", "local", "project", "user", "default"]


@record
class Origin:
    """Where a value comes from: a layer, and in it a flag, a variable or a file."""

    layer: Layer
    source: str = ""

    def __str__(self) -> str:
        return f"{self.layer}: {self.source}" if self.source else self.layer


DEFAULT: Final = Origin(layer="default")


@record
class Part:
    """What one source says; checked."""

    origin: Origin
    raw: Raw


@record
class Loaded:
    """All settings together. `origins` are by dotted key and hold what somebody has set."""

    settings: Settings
    origins: Mapping[str, Origin]

    def origin(self, key: str) -> Origin:
        """Where this value comes from; of a table of values, where one of them does."""
        inner = (origin for name, origin in self.origins.items() if name.startswith(f"{key}."))
        return self.origins.get(key) or next(inner, DEFAULT)


def load(flags: Mapping[str, object], environ: Mapping[str, str], cwd: Path) -> Loaded:
    """The settings that hold in this folder. `flags` are by dotted key; None is not given."""
    raw, origins = merged((*from_files(environ, cwd), *from_environment(environ), *from_flags(flags)))
    settings = cast("Settings", built(raw, Settings))
    loaded = Loaded(settings=settings, origins=origins)
    check_names(settings, lambda key: str(loaded.origin(key)))
    return loaded


def from_files(environ: Mapping[str, str], cwd: Path) -> Sequence[Part]:
    """What the user's file, the project's and the local one say, the weakest first."""
    own = user_file(environ)
    parts = [part for part in (from_file(own, "user"),) if part is not None]
    mine = bool(parts)
    yours = as_table(parts[0].raw.get("providers", {})) if mine else {}
    if any("key" in as_table(table) for table in yours.values()):
        refuse_open(own)
    folder = project_folder(cwd, environ.get("HOME"))
    if folder is not None:
        places: tuple[tuple[str, Layer], ...] = (("config.toml", "project"), ("config.local.toml", "local"))
        for name, layer in places:
            part = from_file(folder / FOLDER / name, layer)
            if part is not None:
                refuse_strangers(part.raw, part.origin.source, parts[0].raw if mine else {}, str(own))
                parts.append(part)
    return parts


def user_file(environ: Mapping[str, str]) -> Path:
    named = environ.get(USER_FILE)
    if named is None:
        return config_folder() / "config.toml"
    if not named.strip():
        raise WorldFault(f"${USER_FILE} is set but empty. Name a file, or unset it for your usual one.")
    if not Path(named).exists():
        raise WorldFault(f"${USER_FILE} names {named!r}, which is not there. Make it, or unset the variable.")
    return Path(named)


def from_file(path: Path, layer: Layer) -> Part | None:
    """What a file says, if it is there."""
    raw = read_toml(path)
    if raw is None:
        return None
    return Part(origin=Origin(layer=layer, source=str(path)), raw=checked(raw, str(path)))


def project_folder(cwd: Path, home: str | None) -> Path | None:
    """The nearest folder above with settings in it, up to the root of the repository or the person's home."""
    for folder in (cwd, *cwd.parents):
        if any(there(folder / FOLDER / name) for name in ("config.toml", "config.local.toml")):
            return folder
        if there(folder / ".git") or str(folder) == home or for_everybody(folder.parent):
            return None
    return None


def there(path: Path) -> bool:
    """Whether there is something that can be seen."""
    try:
        return path.exists()
    except OSError:
        return False


def for_everybody(folder: Path) -> bool:
    """Whether this is a place like /tmp, where anybody may leave things: settings there are not the project's."""
    try:
        return folder.stat().st_mode & SHARED == SHARED
    except OSError:
        return False


def from_environment(environ: Mapping[str, str]) -> Iterator[Part]:
    """One part for each variable that is set."""
    for variable, key in VARIABLES.items():
        value = environ.get(variable)
        if value is None:
            continue
        if not value.strip():
            raise WorldFault(f"${variable} is set but empty. Give it a value, or unset it.")
        yield Part(
            origin=Origin(layer="environment", source=f"${variable}"), raw=checked(nested(key, value), f"${variable}")
        )


def from_flags(flags: Mapping[str, object]) -> Iterator[Part]:
    """One part for each flag that is given."""
    for key, value in flags.items():
        flag = FLAGS.get(key, f"--{key}")
        if value is not None:
            yield Part(origin=Origin(layer="flag", source=flag), raw=checked(nested(key, value), flag))


def nested(key: str, value: object) -> dict[str, object]:
    """`a.b` and its value as tables."""
    first, dot, rest = key.partition(".")
    return {first: nested(rest, value) if dot else value}


def merged(parts: Iterable[Part]) -> tuple[dict[str, object], dict[str, Origin]]:
    """All parts in one, a later one over an earlier one: tables key by key, all else replaces; and who said what."""
    raw: dict[str, object] = {}
    origins: dict[str, Origin] = {}

    def merge(into: dict[str, object], said: Raw, origin: Origin, above: Key) -> None:
        for name, value in said.items():
            if isinstance(value, Mapping):
                merge(cast("dict[str, object]", into.setdefault(name, {})), value, origin, (*above, name))
            else:
                into[name] = value
                origins[".".join((*above, name))] = origin

    for part in parts:
        merge(raw, part.raw, part.origin, ())
    return raw, origins


def built(raw: Raw, hint: object, above: Key = ()) -> object:
    """The record of a table whose values were checked."""
    if not isinstance(hint, type) or not issubclass(hint, msgspec.Struct) or isinstance(raw, hint):
        return raw
    hints = get_type_hints(hint)
    fields = {name: _built_field(value, hints[name], (*above, name)) for name, value in raw.items()}
    needed = [field.name for field in msgspec.structs.fields(hint) if field.required and field.name not in fields]
    if needed:
        raise WorldFault(f"The setting `{dotted(above)}` needs `{needed[0]}` too. Add it beside the others.")
    return hint(**fields)


def _built_field(value: object, hint: object, key: Key) -> object:
    if isinstance(value, Mapping) and get_origin(hint) is Mapping:
        entry = get_args(hint)[1]
        return {name: built(inner, entry, (*key, name)) for name, inner in value.items()}
    return built(cast("Raw", value), hint, key)


@record
class File:
    """One of them."""

    what: Literal["user", "project", "local", "keys"]
    path: Path

    @property
    def there(self) -> bool:
        """Whether it can be seen."""
        return there(self.path)


def looked_at(environ: Mapping[str, str], cwd: Path) -> Sequence[File]:
    """All of them, the weakest first, the keys last. A project without settings would have them in this folder."""
    project = (project_folder(cwd, environ.get("HOME")) or cwd) / FOLDER
    return (
        File(what="user", path=user_file(environ)),
        File(what="project", path=project / "config.toml"),
        File(what="local", path=project / "config.local.toml"),
        File(what="keys", path=keys_file()),
    )


@record
class Row:
    """One setting."""

    key: str
    value: str
    origin: Origin


def rows(loaded: Loaded) -> Sequence[Row]:
    """All settings, also those that nobody has set; of providers, groups, prices and servers what somebody has."""
    return tuple(
        Row(key=dotted(key), value=shown(key, value), origin=loaded.origin(".".join(key)))
        for key, value in flat(loaded.settings, ())
    )


def flat(value: object, key: Key) -> Iterator[tuple[Key, object]]:
    """All single values below a record."""
    if isinstance(value, Server):
        yield key, value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from flat(getattr(value, name), (*key, name))
    elif isinstance(value, Mapping) and key[-1] != "headers":
        for name, one in value.items():
            yield from flat(one, (*key, name))
    else:
        yield key, value


def shown(key: Key, value: object) -> str:
    """A value for people. A header may well be a key."""
    match value:
        case Server():
            return masked(value)
        case None:
            return "none" if key[0] == "limits" else ""
        case Mapping():
            return ", ".join(f"{name}: ****" for name in value)
        case tuple():
            return ", ".join(map(str, value))
        case float():
            return f"{value:g}"
        case _:
            return str(value)
