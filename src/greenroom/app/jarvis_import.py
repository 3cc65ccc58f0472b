"""Import the settings, agents and memories of Jarvis from `~/.jarvis`. Files of Jarvis are only read.

What has an equivalent is taken, the rest is named with the reason. Keys and other secrets are never copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, cast

from greenroom.abilities.protocols.strict_json import ParseError
from greenroom.adapters.models.catalog.catalog import load_providers
from greenroom.adapters.storage.memory_files import MemoryFiles
from greenroom.app.agents.discovery import user_folder
from greenroom.app.agents.front_matter import dump_yaml_keys
from greenroom.app.agents.specs import BadKey, normalise_key, parse_spec
from greenroom.app.memory_organizer import import_memory
from greenroom.app.messages import translate
from greenroom.app.settings.home import create_file
from greenroom.app.settings.keys import quote_toml
from greenroom.app.settings.schema import check_table
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import encode, evolve, record

CONFIG_FILE: Final = "config.yaml"
AGENT_FOLDERS: Final = ("agents", "roles")
MEMORY_FOLDER: Final = "data/memory/global_long_term"
SETTINGS: Final[Mapping[str, str]] = {
    "execute_tool_confirm": "execute_tool_confirm",
    "non_interactive": "non_interactive",
    "after_tool_call_cb_dirs": "after_tool_call",
    "tool_filter_threshold": "agents.filter_tools_above",
    "plan": "agents.plan",
    "plan_enabled": "agents.plan",
    "plan_max_depth": "agents.plan_max_depth",
    "use_methodology": "skills.use",
    "use_analysis": "agents.retrospective",
    "force_save_memory": "agents.force_save_memory",
}
"""Keys of Jarvis' configuration without their prefix, and ours."""

MODEL_KEYS: Final = ("platform", "normal_platform", "model", "normal_model", "llm_group", "llm_groups", "llms")
ADDRESS_VARIABLE: Final = "OPENAI_API_BASE"


@record
class JarvisImport:
    """What was found: the text of our settings, agent files by name, what was taken as `old → new`, and what was left,
    with the reason."""

    settings: str
    agents: Mapping[str, str]
    taken: tuple[str, ...]
    left: tuple[tuple[str, str], ...]


class _Findings:
    """Collects what is taken and what is left."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}
        self.taken: list[str] = []
        self.left: list[tuple[str, str]] = []

    def take(self, old: str, key: str, value: object) -> None:
        """Take a setting, unless it is invalid here. Its value is never repeated in a message."""
        nested = value
        for part in reversed(key.split(".")):
            nested = {part: nested}
        try:
            check_table(cast("Mapping[str, object]", nested), CONFIG_FILE)
        except WorldFault:
            self.leave(old, "import.bad_value", key=key)
            return
        self.values[key] = value
        self.taken.append(f"{old} → {key}")

    def leave(self, old: str, code: str, **details: object) -> None:
        self.left.append((old, translate(code, **details)))


def read_jarvis(folder: Path) -> JarvisImport:
    """Read `~/.jarvis`. Raise `WorldFault` if there is no such folder, or a file that is not YAML."""
    if not folder.is_dir():
        raise WorldFault("import.no_folder", folder=folder)
    found = _Findings()
    config = _read_mapping(folder / CONFIG_FILE) if (folder / CONFIG_FILE).is_file() else {}
    _read_config({normalise_key(key).removeprefix("jarvis_"): value for key, value in config.items()}, found)
    agents: dict[str, str] = {}
    for name in AGENT_FOLDERS:
        for path in sorted((folder / name).glob("*.y*ml")):
            _read_agent(path, found, agents)
    for path in sorted(folder.iterdir()):
        if path.name == "tools" or path.name == "models":
            for file in sorted(path.glob("*.py")):
                found.leave(f"{path.name}/{file.name}", "import.python", folder=user_folder().parent / path.name)
        elif path.name not in (CONFIG_FILE, *AGENT_FOLDERS, "data"):
            found.leave(path.name, "import.no_equivalent")
    return JarvisImport(
        settings=_render_toml(found.values) if found.values else "",
        agents=agents,
        taken=tuple(found.taken),
        left=tuple(found.left),
    )


def _read_mapping(path: Path) -> Mapping[str, object]:
    from greenroom.abilities.protocols.strict_yaml import load

    try:
        value = load(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError, ParseError) as error:
        raise WorldFault("import.unreadable", path=path, why=error) from None
    if not isinstance(value, Mapping):
        raise WorldFault("import.unreadable", path=path, why=translate("import.no_mapping"))
    return value


def _read_config(config: Mapping[str, object], found: _Findings) -> None:
    for key, value in config.items():
        if key in SETTINGS:
            is_path = SETTINGS[key] == "after_tool_call" and isinstance(value, str)
            found.take(key, SETTINGS[key], str(value).split(":") if is_path else value)
        elif key not in (*MODEL_KEYS, "env"):
            found.leave(key, "import.no_equivalent")
    for variable in filter(ADDRESS_VARIABLE.__ne__, _get_table(config, "env")):
        found.leave(f"ENV.{variable}", "import.secret", variable=variable)
    _read_model(config, found)


def _read_model(config: Mapping[str, object], found: _Findings) -> None:
    """Take the model: that of the chosen group, else the default platform and model. Addresses are those of OpenAI."""
    group = _get_table(_get_table(config, "llm_groups"), str(config.get("llm_group", "")))
    llm = _get_table(_get_table(config, "llms"), str(group.get("normal_llm", ""))) or group or config
    platform, model = (str(llm.get(key) or llm.get(f"normal_{key}") or "") for key in ("platform", "model"))
    if not (platform or model):
        return
    if platform not in load_providers() or not model:
        found.leave(f"{platform}/{model}", "import.unknown_platform")
        return
    for key in ("model", "strong", "fast"):
        found.values[key] = f"{platform}:{model}"
    found.taken.append(f"platform, model → model = {platform}:{model}")
    address = _get_table(config, "env").get(ADDRESS_VARIABLE) or _get_table(llm, "llm_config").get("openai_api_base")
    if platform == "openai" and address:
        found.take(ADDRESS_VARIABLE, "providers.openai.base_url", address)


def _get_table(table: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = table.get(key)
    return value if isinstance(value, Mapping) else {}


def _read_agent(path: Path, found: _Findings, agents: dict[str, str]) -> None:
    """Take an agent: the arguments of Jarvis' `Agent` in a file. Arguments that cannot be used are left."""
    label, keys = f"{path.parent.name}/{path.name}", dict(_read_mapping(path))
    name = _find_name(keys, path.stem, label, found)
    if not name:
        return
    if name in agents or (user_folder() / f"{name}.md").exists():
        found.leave(label, "import.agent_exists", name=name)
        return
    prompt = keys.pop(next(key for key in keys if normalise_key(key) in ("system_prompt", "prompt")))
    head = dump_yaml_keys({**keys, "name": name, "design": "jarvis"})
    agents[name] = f"---\n{head}---\n{str(prompt).strip()}\n"
    found.taken.append(f"{label} → {user_folder() / name}.md")


def _find_name(keys: dict[str, object], default_name: str, label: str, found: _Findings) -> str:
    """Remove the arguments that cannot be used, and return the agent's name; empty if it cannot be an agent."""
    try:
        return parse_spec({**keys, "design": "jarvis"}, default_name=default_name).name
    except BadKey as bad:
        found.left.append((label, str(bad)))
        return _find_name(keys, default_name, label, found) if keys.pop(bad.key, None) is not None else ""


def _render_toml(values: Mapping[str, object]) -> str:
    """Return settings as TOML. Tables come after the plain keys."""
    tables: dict[str, list[str]] = {"": ["version = 1"]}
    for key, value in values.items():
        table, _, name = key.rpartition(".")
        rows = tables.setdefault(table, [f"\n[{table}]"])
        rows.append(f"{name} = {quote_toml(value) if isinstance(value, str) else encode(value).decode()}")
    return "".join(f"{row}\n" for rows in tables.values() for row in rows)


def import_memories(folder: Path, memories: MemoryFiles) -> Iterator[str]:
    """Save Jarvis' global memories as the person's, and yield the names of files that are none."""
    for path in sorted((folder / MEMORY_FOLDER).glob("*.json")):
        try:
            import_memory(memories, evolve(memories.read_file(path), type="global_long_term"))
        except WorldFault:
            yield f"{MEMORY_FOLDER}/{path.name}"


def write_agents(agents: Mapping[str, str]) -> None:
    """Write the agent files. None of them exists yet."""
    for name, text in agents.items():
        user_folder().mkdir(parents=True, exist_ok=True)
        create_file(user_folder() / f"{name}.md", text)
