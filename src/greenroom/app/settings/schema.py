"""The schema of all settings, for files, environment variables and flags, and the checks of one layer.

Every error names the source, the key, the problem and the fix.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias, cast, get_args, get_origin, get_type_hints

import msgspec

from greenroom.adapters.mcp.configuration import ROOT_KEY, McpServer, parse_servers
from greenroom.adapters.models.catalog.catalog import Wire
from greenroom.app.messages import translate
from greenroom.app.settings import values
from greenroom.app.settings.home import read_inside
from greenroom.app.settings.values import BadValue, Secret
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.teamwork.plan import TeamSettings

ROLES: Final = ("strong", "fast")
MICRODOLLARS_PER_DOLLAR: Final = 1_000_000


@record
class GroupSettings:
    """`[groups.NAME]`: models that replace each other when one fails.

    - `models`: Full model names; the first is asked first. Required.
    """

    models: tuple[str, ...]


@record
class ProviderSettings:
    """`[providers.NAME]`: overrides of the provider catalog. An empty value keeps the catalog's value.

    - `base_url`: The API address.
    - `key_env`: The environment variable with the API key.
    - `key`: The API key. Prefer `key_env`, or `greenroom init`, which stores it in a file of its own.
    - `wire`: The client: `openai` (built in) or `pydantic_ai` (the extra `vendors`).
    - `max_parallel`: How many requests run at the same time. Default: 64.
    - `requests_per_minute`: The rate limit in requests per minute. Default: none.
    - `headers`: Extra HTTP headers.
    - `timeout`: The time limit of one request in seconds. Default: 600.
    """

    base_url: Annotated[str, values.parse_url] = ""
    key_env: Annotated[str, values.parse_variable] = ""
    key: Annotated[Secret | None, values.parse_text] = None
    wire: Annotated[Wire | None, values.one_of("openai", "pydantic_ai")] = None
    max_parallel: int = 64
    requests_per_minute: Annotated[int | None, values.parse_count] = None
    headers: Annotated[Mapping[str, str], values.parse_headers] = msgspec.field(default_factory=dict)
    timeout: float = 600.0


@record
class PriceSettings:
    """`[prices."PROVIDER:MODEL"]`: prices that replace those of the catalog.

    - `input`: Dollars per million input tokens. Required.
    - `output`: Dollars per million output tokens. Required.
    - `cached`: Dollars per million tokens read from a cache. Default: `input`.
    - `written`: Dollars per million tokens written to a cache. Default: `input`.
    """

    input: Annotated[float, values.parse_price]
    output: Annotated[float, values.parse_price]
    cached: Annotated[float | None, values.parse_price] = None
    written: Annotated[float | None, values.parse_price] = None


@record
class ModelSettings:
    """`[models."PROVIDER:MODEL"]`: what a model can do. A value replaces that of the catalog.

    - `window`: Tokens that a request and its answer may have. Default: the catalog's, else 32,768.
    - `max_output`: Tokens of the longest answer. Default: the catalog's, else 4,096; at most half of `window`.
    - `tools`: Whether it takes tools. If not, calls are read from its text. Default: the catalog's, else true.
    - `strict`: Whether its endpoint enforces JSON schemas. Default: the catalog's, else false.
    - `images`: Whether it sees images. Default: the catalog's, else false.
    """

    window: Annotated[int | None, values.parse_count] = None
    max_output: Annotated[int | None, values.parse_count] = None
    tools: Annotated[bool | None, values.parse_switch] = None
    strict: Annotated[bool | None, values.parse_switch] = None
    images: Annotated[bool | None, values.parse_switch] = None


@record
class RetrySettings:
    """`[retry]`: when a model call is retried.

    - `attempts`: How often a failed call is repeated. Default: 3.
    - `delay`: The first wait in seconds; later ones are longer. Default: 1.
    - `total`: The time limit of all attempts in seconds. Default: 300.
    """

    attempts: int = 3
    delay: Annotated[float, values.parse_delay] = 1.0
    total: float = 300.0


@record
class LimitSettings:
    """`[limits]`: what one run can spend. `"none"` removes a limit.

    - `cost`: Dollars that a run can cost. Default: 5.
    - `tokens`: Tokens that a run can use. Default: none.
    - `time`: Seconds that a run can work. Waiting for you does not count. Default: none.
    """

    cost: Annotated[float | None, values.parse_cost] = 5.0
    tokens: Annotated[int | None, values.parse_tokens] = None
    time: Annotated[float | None, values.parse_time] = None

    @property
    def limits(self) -> Limits:
        """The limits in the units of a budget."""
        return Limits(
            money=None if self.cost is None else round(self.cost * MICRODOLLARS_PER_DOLLAR),
            tokens=self.tokens,
            millis=None if self.time is None else round(self.time * 1000),
        )


@record
class WebSettings:
    """`[web]`: web search and web access.

    - `search`: The search engine. Default: `ddgs`.
    - `searxng_url`: The address of your SearXNG server.
    - `local`: Local hosts with ports that agents can reach, like `localhost:8000`. Default: none.
    - `ports`: Ports that agents can reach besides 80 and 443. Default: none.
    - `delay`: Seconds between two pages of one host in a research run. Default: 0.5.
    """

    search: Literal["ddgs", "tavily", "searxng"] = "ddgs"
    searxng_url: Annotated[str, values.parse_url] = ""
    local: Annotated[tuple[str, ...], values.parse_hosts_and_ports] = ()
    ports: Annotated[tuple[int, ...], values.parse_ports] = ()
    delay: Annotated[float, values.parse_delay] = 0.5


@record
class BrowserSettings:
    """`[browser]`: the browser of agents.

    - `program`: The path of Chromium. Default: found automatically.
    - `headless`: Whether the browser is hidden. Default: hidden only without a screen.
    - `steps`: How many actions one browser task can take. Default: 100.
    - `seconds`: The time limit of one browser task in seconds. Default: 900.
    - `tokens`: The token limit of one browser task. Default: 300,000.
    - `hosts`: Hosts that are always allowed, as a name or `*.domain`. Default: none.
    """

    program: str = ""
    headless: Annotated[bool | None, values.parse_switch] = None
    steps: int = 100
    seconds: float = 900.0
    tokens: int = 300_000
    hosts: Annotated[tuple[str, ...], values.parse_hosts] = ()


@record
class SandboxSettings:
    """`[sandbox]`: what confines commands.

    - `walls`: `auto` uses the best sandbox of this machine. `off` disables it, and each command needs approval.
      Default: `auto`.
    - `hosts`: Hosts that commands can reach through the egress proxy, as a name or `*.domain`. Default: none.
    """

    walls: Literal["auto", "off"] = "auto"
    hosts: Annotated[tuple[str, ...], values.parse_hosts] = ()


@record
class CheckSettings:
    """`[checks.NAME]`: a check of the project.

    - `run`: The command line. Required.
    - `kind`: What it checks. A change needs a passing test to be verified. Default: `test`.
    - `folder`: Where it runs, relative to the workspace. Default: `.`.
    - `seconds`: The time limit in seconds. Default: 900.
    """

    run: str
    kind: Literal["test", "types", "lint", "build"] = "test"
    folder: str = "."
    seconds: float = 900.0


@record
class WorktreeSettings:
    """`[workspace]`: how a worktree is prepared.

    - `setup`: A command line that runs once in each new worktree. Default: none.
    - `seconds`: The time limit of `setup` in seconds. Default: 600.
    - `lend`: Ignored; kept for old files.
    """

    setup: str = ""
    seconds: float = 600.0
    lend: tuple[str, ...] = ()


@record
class SkillSettings:
    """`[skills]`: know-how in files that agents are given for a task.

    - `use`: Whether agents get skills. Default: true.
    - `repositories`: Git repositories with skills; `greenroom skills sync` copies them. Default: none.
    """

    use: bool = True
    repositories: Annotated[tuple[str, ...], values.parse_repositories] = ()


@record
class AgentDefaults:
    """`[agents]`: what agents do whose files do not say otherwise.

    - `plan`: Whether an agent may split a task, and give the parts to copies of itself. Default: false.
    - `plan_max_depth`: How deep parts are split again. Default: 2.
    - `retrospective`: Whether an agent asks before the end of its work if you are satisfied, and may propose a skill.
      Default: false.
    - `force_save_memory`: Whether an agent that can save memories is asked before the end what is worth remembering.
      Default: false.
    - `filter_tools_above`: An agent with more tools first selects those that its task needs; 0 disables this.
      Default: 30.
    """

    plan: bool = False
    plan_max_depth: Annotated[int, msgspec.Meta(ge=1, le=5)] = 2
    retrospective: bool = False
    force_save_memory: bool = False
    filter_tools_above: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 30


@record
class Settings:
    """All settings. The settings page takes its descriptions from the docstrings of these records.

    - `version`: The version of the file format. Default: 1.
    - `model`: The default model: a full name, a group or a role. Default: the first model found on this machine.
    - `strong`: The model for hard work.
    - `fast`: The model for small work.
    - `mcp`: MCP servers by name.
    - `language`: The language of messages and prompts. Default: `en`.
    - `after_tool_call`: Folders with callbacks that run after each tool call. Default: none.
    - `execute_tool_confirm`: Whether every tool call needs approval, even read-only ones. Default: false.
    - `non_interactive`: Deny every call that would need approval. Default: false.
    - `approvals_expire`: Seconds after which an unanswered approval request is denied. Default: never.
    """

    version: Annotated[int, values.parse_version] = 1
    model: str = ""
    strong: str = ""
    fast: str = ""
    groups: Mapping[str, GroupSettings] = msgspec.field(default_factory=dict)
    providers: Mapping[str, ProviderSettings] = msgspec.field(default_factory=dict)
    prices: Mapping[str, PriceSettings] = msgspec.field(default_factory=dict)
    models: Mapping[str, ModelSettings] = msgspec.field(default_factory=dict)
    mcp: Mapping[str, McpServer] = msgspec.field(default_factory=dict)
    retry: RetrySettings = RetrySettings()
    limits: LimitSettings = LimitSettings()
    web: WebSettings = WebSettings()
    browser: BrowserSettings = BrowserSettings()
    language: Literal["en", "zh"] = "en"
    after_tool_call: Annotated[tuple[str, ...], values.parse_folders] = ()
    execute_tool_confirm: bool = False
    non_interactive: bool = False
    approvals_expire: Annotated[float | None, values.parse_expiry] = None
    sandbox: SandboxSettings = SandboxSettings()
    checks: Mapping[str, CheckSettings] = msgspec.field(default_factory=dict)
    workspace: WorktreeSettings = WorktreeSettings()
    team: TeamSettings = TeamSettings()
    skills: SkillSettings = SkillSettings()
    agents: AgentDefaults = AgentDefaults()

    @property
    def approval_timeout_ms(self) -> int | None:
        """How long an approval request stays open, in milliseconds. None means forever."""
        return None if self.approvals_expire is None else round(self.approvals_expire * 1000)


SERVER_KEYS: Final = (
    *("type", "command", "args", "env", "cwd", "url", "headers", "timeout", "start_timeout", "disabled", "read_only"),
)
"""The keys of an MCP server. A project's .mcp.json can have other keys; they are ignored."""


SERVERS_TYPE: Final = Mapping[str, McpServer]


def parse_user_servers(value: Raw, source: str) -> Mapping[str, McpServer]:
    """Return the person's MCP servers by name."""
    for name, table in value.items():
        for key in table if isinstance(table, Mapping) else ():
            if key not in SERVER_KEYS:
                raise WorldFault(
                    "settings.unknown_setting",
                    source=source,
                    key=join_key(("mcp", name, key)),
                    hint=suggest_name(key, SERVER_KEYS),
                )
    return {server.name: server for server in parse_servers({ROOT_KEY: value}, f"{source}, [mcp]", is_own=True)}


DEFAULT_READERS: Final[Mapping[object, values.Reader]] = {
    str: values.parse_text,
    int: values.parse_count,
    float: values.parse_duration,
    bool: values.parse_switch,
    tuple[str, ...]: values.parse_texts,
}


Key: TypeAlias = tuple[str, ...]
Raw: TypeAlias = Mapping[str, object]

MAX_FILE_BYTES: Final = 1_000 * 1024
SECRET_KEYS: Final = {"key", "key_env", "headers"}
"""Keys whose values may be secret and are not repeated in messages."""


def read_toml(path: Path) -> Raw | None:
    """Return the content of a TOML file, or None if there is no file."""
    text = read_text(path)
    return None if text is None else parse_toml(text, path)


def parse_toml(text: str, path: Path) -> Raw:
    """Return the content of the TOML file at this path. Raise `WorldFault` if it is not TOML."""
    try:
        return tomllib.loads(text)
    except ValueError as error:  # also for an integer with thousands of digits
        reason = str(error).replace("at end of document", "at the end of its last line")
        raise WorldFault("settings.not_toml", path=path, reason=reason) from None
    except RecursionError:
        raise WorldFault("settings.nested_too_deeply", path=path) from None


def read_text(path: Path) -> str | None:
    """Return the content of a settings file, or None if there is no file."""
    try:
        return read_inside(path, None, MAX_FILE_BYTES).decode("utf-8-sig") if path.exists() else None
    except WorldFault as fault:
        raise WorldFault("files.fault", path=path, fault=fault) from None
    except OSError as error:
        raise WorldFault("settings.toml_unreadable", path=path, strerror=error.strerror) from None
    except UnicodeDecodeError as error:
        raise WorldFault("settings.not_utf8", path=path, start=error.start) from None


def check_table(raw: Raw, source: str, kind: type = Settings, parents: Key = ()) -> dict[str, object]:
    """Check every value against the record `kind`. Required keys can be missing; another layer may have them."""
    known = get_type_hints(kind, include_extras=True)
    table: dict[str, object] = {}
    for key in sorted(raw, key=lambda key: key != "version"):  # keys of a newer version would look like mistakes
        if key not in known:
            raise WorldFault(
                "settings.unknown_setting",
                source=source,
                key=join_key((*parents, key)),
                hint=suggest_name(key, known),
            )
        table[key] = check_value(raw[key], source, known[key], (*parents, key))
    return table


def suggest_name(key: str, known: Collection[str]) -> str:
    """Suggest the closest known name, or list all names."""
    near = get_close_matches(key, known, n=1)
    if near:
        return translate("hints.meant_key", near=near[0])
    return translate("hints.there", there=", ".join(f"`{name}`" for name in known))


def check_value(value: object, source: str, hint: object, key: Key) -> object:
    """Check a value or table against its field: by the annotation, else by the type's default reader."""
    is_record = isinstance(hint, type) and issubclass(hint, msgspec.Struct)
    if not is_record and get_origin(hint) is not Mapping:
        return _read_value(value, source, hint, key)
    if not isinstance(value, Mapping):
        name = "mcp.NAME" if hint == SERVERS_TYPE else join_key(key)
        raise WorldFault("settings.table_expected", source=source, key=join_key(key), name=name)
    if is_record:
        return check_table(value, source, cast("type", hint), key)
    if hint == SERVERS_TYPE:
        return parse_user_servers(value, source)
    return {name: check_value(inner, source, get_args(hint)[1], (*key, name)) for name, inner in value.items()}


def _read_value(value: object, source: str, hint: object, key: Key) -> object:
    if get_origin(hint) is Annotated:
        kind, extra = get_args(hint)[:2]
        reader = values.make_range_parser(kind, extra) if isinstance(extra, msgspec.Meta) else extra
    else:
        reader = values.one_of(*get_args(hint)) if get_origin(hint) is Literal else DEFAULT_READERS[hint]
    try:
        parsed = reader(value)
    except BadValue as unfit:
        code, shown_value = "settings.bad_value", shorten(value)
        if SECRET_KEYS & set(key):
            code, shown_value = "settings.bad_secret", ""
        raise WorldFault(code, source=source, key=join_key(key), unfit=unfit, value=shown_value) from None
    return Secret(key[-2], str(parsed)) if key[0] == "providers" and key[-1] == "key" else parsed


def join_key(key: Key) -> str:
    """Join a key as it is written in a file."""
    return ".".join(
        part if part.isascii() and part.replace("-", "").replace("_", "").isalnum() else f'"{part}"' for part in key
    )


def shorten(value: object) -> str:
    """Format a value for a message, shortened."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def as_table(value: object) -> Raw:
    assert isinstance(value, Mapping)
    return value
