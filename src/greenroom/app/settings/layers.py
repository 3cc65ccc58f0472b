"""Settings from all layers, with the origin of each value: flags > environment > local > project > user > defaults.

Tables are merged key by key; lists and single values replace. Each layer is checked alone, so an error names its
source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from typing import Final, Literal, cast, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec

from greenroom.adapters.mcp.configuration import McpServer, render_masked
from greenroom.adapters.models.catalog.catalog import load_providers, make_unknown_fault, split_model_name
from greenroom.app.messages import translate
from greenroom.app.settings.home import config_folder
from greenroom.app.settings.keys import keys_file, refuse_readable
from greenroom.app.settings.schema import (
    ROLES,
    Key,
    LimitSettings,
    Raw,
    Settings,
    as_table,
    check_table,
    join_key,
    read_text,
    read_toml,
    suggest_name,
)
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record

USER_ONLY_PROVIDER_KEYS: Final = ("key", "key_env", "headers")
USER_ONLY_SETTINGS: Final[Mapping[str, str]] = {
    "models": "user_only.models",
    "web": "user_only.web",
    "browser": "user_only.browser",
    "after_tool_call": "user_only.callbacks",
    "sandbox": "user_only.sandbox",
    "skills": "user_only.skills",
    "non_interactive": "user_only.asking",
    "approvals_expire": "user_only.expiry",
}
"""Settings that only the user's file can set, with the reason."""


def refuse_project_settings(raw: Raw, source: str, user_settings: Raw, user_file: str) -> None:
    """Raise `WorldFault` for the first setting that a project cannot set. `user_settings` come from the user's file."""
    if "mcp" in raw:
        raise WorldFault("settings.project_sets_mcp", source=source)
    for key, why in USER_ONLY_SETTINGS.items():
        if key in raw:
            raise make_project_error(source, (key,), why, user_file)
    _refuse_spending(raw, source, as_table(user_settings.get("limits", {})), user_file)
    _refuse_providers(raw, source, as_table(user_settings.get("providers", {})), user_file)
    if raw.get("execute_tool_confirm") is False:  # a project can require more approvals, never fewer
        raise make_project_error(source, ("execute_tool_confirm",), "user_only.confirming", user_file)


def _refuse_spending(raw: Raw, source: str, user_limits: Raw, user_file: str) -> None:
    """Raise `WorldFault` if a project raises a limit or sets a price. It can lower limits."""
    if "prices" in raw:
        raise make_project_error(source, ("prices",), "user_only.prices", user_file)
    project_limits, default_limits = as_table(raw.get("limits", {})), {"cost": LimitSettings().cost}
    for key, value in project_limits.items():
        cap = user_limits[key] if key in user_limits else default_limits.get(key)
        if cap is not None and (value is None or cast("float", value) > cast("float", cap)):
            raise make_project_error(source, ("limits", key), "user_only.limit", user_file, cap=cap)


def _refuse_providers(raw: Raw, source: str, user_providers: Collection[str], user_file: str) -> None:
    for name, table in as_table(raw.get("providers", {})).items():
        provider_table = as_table(table)
        for key in USER_ONLY_PROVIDER_KEYS:
            if key in provider_table:
                reason = "user_only.key" if key == "key" else "user_only.headers"
                raise make_project_error(source, ("providers", name, key), reason, user_file)
        if "base_url" in provider_table and not is_allowed_base_url(
            name, str(provider_table["base_url"]), user_providers
        ):
            where = ("providers", name, "base_url")
            raise make_project_error(source, where, "user_only.base_url", user_file)


def is_allowed_base_url(name: str, base_url: str, user_providers: Collection[str]) -> bool:
    """Whether a project can set this provider's address: only on this machine, and only if the person has no key for
    it."""
    provider = load_providers().get(name)
    has_key = name in user_providers or (provider is not None and not provider.local)
    return not has_key and is_loopback(urlsplit(base_url).hostname or "")


def is_loopback(host: str) -> bool:
    """Whether a host is the loopback interface."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def make_project_error(source: str, key: Key, why: str, user_file: str, **values: object) -> WorldFault:
    return WorldFault(
        "settings.user_only_setting",
        source=source,
        key=join_key(key),
        why=translate(why, **values),
        user_file=user_file,
    )


OriginLookup = Callable[[str], str]


def check_names(settings: Settings, origin: OriginLookup) -> None:
    """Raise `WorldFault` for the first unknown provider, group or model, with its origin."""
    for name, provider in settings.providers.items():
        if name not in load_providers() and not provider.base_url:
            fault = make_unknown_fault(name, load_providers())
            raise WorldFault("settings.provider_without_url", name=name, fault=fault)
    for name, group in settings.groups.items():
        where = origin(f"groups.{name}.models")
        if name in ROLES or ":" in name or not name.strip():
            raise WorldFault("settings.bad_group_name", where=where, name=name)
        for model in group.models:
            check_full_model_name(settings, f"groups.{name}.models", model, where)
    for key in ("model", *ROLES):
        value: str = getattr(settings, key)
        if value:
            check_model(settings, key, value, origin(key))
    for name in settings.prices:
        check_full_model_name(settings, f'prices."{name}"', name, origin(f"prices.{name}.input"))
    for name in settings.models:
        check_full_model_name(settings, f'models."{name}"', name, origin(f"models.{name}"))


def check_model(settings: Settings, key: str, value: str, where: str) -> None:
    """Check that a model is a full name, a group, or (for `model`) a role."""
    other_names = (*settings.groups, *(ROLES if key == "model" else ()))
    if value in other_names:
        return
    near = get_close_matches(value, other_names, n=1)
    if ":" not in value and near:
        raise WorldFault("settings.unknown_group", where=where, key=key, value=value, near=near[0])
    check_full_model_name(settings, key, value, where)


def check_full_model_name(settings: Settings, key: str, value: str, where: str) -> None:
    """Check that a name is `provider:model` with a known provider."""
    try:
        split_model_name(value, own_providers=settings.providers)
    except WorldFault as fault:
        raise WorldFault(f"{where}: `{key}`: {fault}") from None


CONFIG_VARIABLE: Final = "GREENROOM_CONFIG"
PROJECT_FOLDER: Final = ".greenroom"
MULTI_AGENT_FILE: Final = "multiAgent.json"
IMPORT_ROOT: Final = "multiAgent"
IMPORT_KEYS: Final = ("enabled", "maxConcurrentAgents", "defaultAgents")
IMPORT_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "taskAnalysis": ("autoDecompose", "minSubtasks", "maxSubtasks", "parallelizationThreshold"),
    "scheduling": ("strategy", "considerDependencies", "optimizeForSpeed"),
    "monitoring": ("realTimeProgress", "detailedLogs", "performanceMetrics"),
    "conflictResolution": ("strategy", "fallbackToHuman", "autoResolveThreshold"),
    "integration": ("validateSyntax", "validateTypes", "minCoverage", "requireDocumentation"),
}
OTHER_NAMES: Final = {("conflictResolution", "strategy"): "conflict_strategy"}
"""Keys that two groups have: one of them is another setting."""

_WORD_START: Final = re.compile(r"(?=[A-Z])")
PROJECT_FILES: Final = ("config.toml", "config.local.toml", MULTI_AGENT_FILE)
SHARED_FOLDER_MODE: Final = 0o1002
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
class SettingOrigin:
    """Where a value comes from: a layer, and a flag, variable or file in it."""

    layer: Layer
    source: str = ""

    def __str__(self) -> str:
        return f"{self.layer}: {self.source}" if self.source else self.layer


DEFAULT_ORIGIN: Final = SettingOrigin(layer="default")


@record
class SettingsPart:
    """The checked settings of one source."""

    origin: SettingOrigin
    raw: Raw


@record
class LoadedSettings:
    """All settings together. `origins` maps the dotted key of each value that is set to its origin."""

    settings: Settings
    origins: Mapping[str, SettingOrigin]

    def origin(self, key: str) -> SettingOrigin:
        """Return the origin of a value. For a table, return the origin of one of its values."""
        inner = (origin for name, origin in self.origins.items() if name.startswith(f"{key}."))
        return self.origins.get(key) or next(inner, DEFAULT_ORIGIN)


def load_settings(flags: Mapping[str, object], environ: Mapping[str, str], cwd: Path) -> LoadedSettings:
    """Load the settings for a folder. `flags` are by dotted key; None means not given."""
    parts = (*read_files(environ, cwd), *read_environment(environ), *read_flags(flags))
    raw, origins = merge_parts(parts)
    settings = cast("Settings", build_record(raw, Settings))
    loaded = LoadedSettings(settings=settings, origins=origins)
    check_names(settings, lambda key: str(loaded.origin(key)))
    return loaded


def read_files(environ: Mapping[str, str], cwd: Path) -> Sequence[SettingsPart]:
    """Read the user's, the project's and the local file, weakest first."""
    user_path = user_file(environ)
    own = read_file(user_path, "user")
    user_raw = own.raw if own is not None else {}
    parts = [*read_import(user_path.parent, "user"), *((own,) if own is not None else ())]
    user_providers = as_table(user_raw.get("providers", {}))
    if any("key" in as_table(table) for table in user_providers.values()):
        refuse_readable(user_path)
    folder = project_folder(cwd, environ.get("HOME"))
    if folder is not None:
        parts += read_import(folder / PROJECT_FOLDER, "project")
        files: tuple[tuple[str, Layer], ...] = (("config.toml", "project"), ("config.local.toml", "local"))
        for name, layer in files:
            part = read_file(folder / PROJECT_FOLDER / name, layer)
            if part is not None:
                refuse_project_settings(part.raw, part.origin.source, user_raw, str(user_path))
                parts.append(part)
    return parts


def user_file(environ: Mapping[str, str]) -> Path:
    named = environ.get(CONFIG_VARIABLE)
    if named is None:
        return config_folder() / "config.toml"
    if not named.strip():
        raise WorldFault("settings.config_variable_empty", config_variable=CONFIG_VARIABLE)
    if not Path(named).exists():
        raise WorldFault("settings.config_file_missing", config_variable=CONFIG_VARIABLE, named=named)
    return Path(named)


def read_file(path: Path, layer: Layer) -> SettingsPart | None:
    """Read a settings file, or return None if it does not exist."""
    raw = read_toml(path)
    if raw is None:
        return None
    return SettingsPart(origin=SettingOrigin(layer=layer, source=str(path)), raw=check_table(raw, str(path)))


def read_import(folder: Path, layer: Layer) -> Iterator[SettingsPart]:
    """Yield the team settings of a folder's `multiAgent.json`, if there is one."""
    path = folder / MULTI_AGENT_FILE
    if (raw := read_multi_agent(path)) is not None:
        yield SettingsPart(origin=SettingOrigin(layer=layer, source=str(path)), raw=check_table(raw, str(path)))


def read_multi_agent(path: Path) -> Raw | None:
    """Read such a file, or return None if there is none. Raise `WorldFault` for an unknown key."""
    text = read_text(path)
    if text is None:
        return None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WorldFault("settings.not_json", path=path, reason=str(error)) from None
    root = _open_object(
        _open_object(content, path, (), (IMPORT_ROOT,)).get(IMPORT_ROOT, {}),
        path,
        (IMPORT_ROOT,),
        (*IMPORT_KEYS, *IMPORT_GROUPS),
    )
    table = {_name_setting("", key): value for key, value in root.items() if key in IMPORT_KEYS}
    for group, keys in IMPORT_GROUPS.items():
        inner = _open_object(root.get(group, {}), path, (IMPORT_ROOT, group), keys)
        table.update({_name_setting(group, key): value for key, value in inner.items()})
    return {"team": table}


def _name_setting(group: str, key: str) -> str:
    return OTHER_NAMES.get((group, key)) or _WORD_START.sub("_", key).lower()


def _open_object(value: object, path: Path, parents: tuple[str, ...], known: Collection[str]) -> Raw:
    """Return a table with known keys only."""
    if not isinstance(value, Mapping):
        raise WorldFault("settings.object_expected", path=path, key=join_key(parents) or IMPORT_ROOT)
    for key in value:
        if key not in known:
            hint, name = suggest_name(key, known), join_key((*parents, key))
            raise WorldFault("settings.unknown_setting", source=path, key=name, hint=hint)
    return value


def project_folder(cwd: Path, home: str | None) -> Path | None:
    """Return the nearest parent folder with settings, up to the repository root or the person's home."""
    for folder in (cwd, *cwd.parents):
        if any(is_visible(folder / PROJECT_FOLDER / name) for name in PROJECT_FILES):
            return folder
        if is_visible(folder / ".git") or str(folder) == home or is_shared_folder(folder.parent):
            return None
    return None


def is_visible(path: Path) -> bool:
    """Whether the path exists and is accessible."""
    try:
        return path.exists()
    except OSError:
        return False


def is_shared_folder(folder: Path) -> bool:
    """Whether any user can create files in this folder, as in /tmp. Settings there do not belong to a project."""
    try:
        return folder.stat().st_mode & SHARED_FOLDER_MODE == SHARED_FOLDER_MODE
    except OSError:
        return False


def read_environment(environ: Mapping[str, str]) -> Iterator[SettingsPart]:
    """Yield the settings of each environment variable that is set."""
    for variable, key in VARIABLES.items():
        value = environ.get(variable)
        if value is None:
            continue
        if not value.strip():
            raise WorldFault("settings.variable_empty", variable=variable)
        yield SettingsPart(
            origin=SettingOrigin(layer="environment", source=f"${variable}"),
            raw=check_table(nest_value(key, value), f"${variable}"),
        )


def read_flags(flags: Mapping[str, object]) -> Iterator[SettingsPart]:
    for key, value in flags.items():
        flag = FLAGS.get(key, f"--{key}")
        if value is not None:
            yield SettingsPart(
                origin=SettingOrigin(layer="flag", source=flag), raw=check_table(nest_value(key, value), flag)
            )


def nest_value(key: str, value: object) -> dict[str, object]:
    """Return nested tables for a dotted key."""
    first, dot, rest = key.partition(".")
    return {first: nest_value(rest, value) if dot else value}


def merge_parts(parts: Iterable[SettingsPart]) -> tuple[dict[str, object], dict[str, SettingOrigin]]:
    """Merge the parts, later ones over earlier ones, and return the values with their origins."""
    raw: dict[str, object] = {}
    origins: dict[str, SettingOrigin] = {}

    def merge(into: dict[str, object], table: Raw, origin: SettingOrigin, parents: Key) -> None:
        for name, value in table.items():
            if isinstance(value, Mapping):
                merge(cast("dict[str, object]", into.setdefault(name, {})), value, origin, (*parents, name))
            else:
                into[name] = value
                origins[".".join((*parents, name))] = origin

    for part in parts:
        merge(raw, part.raw, part.origin, ())
    return raw, origins


def build_record(raw: Raw, hint: object, parents: Key = ()) -> object:
    """Build a record from a checked table. Raise `WorldFault` if a required key is missing."""
    if not isinstance(hint, type) or not issubclass(hint, msgspec.Struct) or isinstance(raw, hint):
        return raw
    hints = get_type_hints(hint)
    fields = {name: _build_field(value, hints[name], (*parents, name)) for name, value in raw.items()}
    needed = [field.name for field in msgspec.structs.fields(hint) if field.required and field.name not in fields]
    if needed:
        raise WorldFault("settings.required_key_missing", key=join_key(parents), needed=needed[0])
    return hint(**fields)


def _build_field(value: object, hint: object, key: Key) -> object:
    if isinstance(value, Mapping) and get_origin(hint) is Mapping:
        entry = get_args(hint)[1]
        return {name: build_record(inner, entry, (*key, name)) for name, inner in value.items()}
    return build_record(cast("Raw", value), hint, key)


@record
class SettingsFile:
    """A settings or key file."""

    what: Literal["import", "user", "project", "local", "keys"]
    path: Path

    @property
    def is_visible(self) -> bool:
        """Whether the file exists and is accessible."""
        return is_visible(self.path)


def list_settings_files(environ: Mapping[str, str], cwd: Path) -> Sequence[SettingsFile]:
    """Return all settings files, weakest first, then the key file. Without project settings, use the current folder."""
    project, own = (project_folder(cwd, environ.get("HOME")) or cwd) / PROJECT_FOLDER, user_file(environ)
    imports = (SettingsFile(what="import", path=folder / MULTI_AGENT_FILE) for folder in (own.parent, project))
    return (
        *(file for file in imports if file.is_visible),
        SettingsFile(what="user", path=own),
        SettingsFile(what="project", path=project / "config.toml"),
        SettingsFile(what="local", path=project / "config.local.toml"),
        SettingsFile(what="keys", path=keys_file()),
    )


@record
class SettingRow:
    """One setting with its value and origin."""

    key: str
    value: str
    origin: SettingOrigin


def list_settings(loaded: LoadedSettings) -> Sequence[SettingRow]:
    """Return all settings with their values, including defaults."""
    return tuple(
        SettingRow(key=join_key(key), value=render_value(key, value), origin=loaded.origin(".".join(key)))
        for key, value in flatten_record(loaded.settings, ())
    )


def flatten_record(value: object, key: Key) -> Iterator[tuple[Key, object]]:
    """Yield all single values below a record."""
    if isinstance(value, McpServer):
        yield key, value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from flatten_record(getattr(value, name), (*key, name))
    elif isinstance(value, Mapping) and key[-1] != "headers":
        for name, inner in value.items():
            yield from flatten_record(inner, (*key, name))
    else:
        yield key, value


def render_value(key: Key, value: object) -> str:
    """Format a value for people. Header values are masked because they may be keys."""
    match value:
        case McpServer():
            return render_masked(value)
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
