"""All that can be set, as records: the one schema of files, environment and flags, and how a layer is checked by it.

Every fault names the source, the key, what is wrong and what to do.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias, cast, get_args, get_origin, get_type_hints

import msgspec

from greenroom.adapters.mcp.configuration import ROOT, Server, servers
from greenroom.adapters.models.catalog.catalog import Wire
from greenroom.app.settings import values
from greenroom.app.settings.home import read_inside
from greenroom.app.settings.values import Secret, Unfit
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record

ROLES: Final = ("strong", "fast")
MILLION: Final = 1_000_000


@record
class Group:
    """Models that stand in for each other: the first is the main one."""

    models: tuple[str, ...]


@record
class ProviderSettings:
    """What a person says of a provider, beyond what the catalog knows. What is None or empty is left to the catalog."""

    base_url: Annotated[str, values.url] = ""
    key_env: Annotated[str, values.variable] = ""
    key: Annotated[Secret | None, values.text] = None
    wire: Annotated[Wire | None, values.one_of("openai", "pydantic_ai")] = None
    max_parallel: int = 64
    requests_per_minute: Annotated[int | None, values.count] = None
    headers: Annotated[Mapping[str, str], values.headers] = msgspec.field(default_factory=dict)
    timeout: float = 600.0


@record
class Price:
    """Dollars per million tokens. What is read from or written to a cache costs as much as other input, if not said."""

    input: Annotated[float, values.price]
    output: Annotated[float, values.price]
    cached: Annotated[float | None, values.price] = None
    written: Annotated[float | None, values.price] = None


@record
class Retry:
    """How often a model is asked again, the first wait and the longest time for all, in seconds."""

    attempts: int = 3
    delay: Annotated[float, values.delay] = 1.0
    total: float = 300.0


@record
class Caps:
    """What a run may spend: dollars, tokens, seconds. None is no cap."""

    cost: Annotated[float | None, values.cost] = 5.0
    tokens: Annotated[int | None, values.tokens] = None
    time: Annotated[float | None, values.time] = None

    @property
    def limits(self) -> Limits:
        """The same as a budget has it."""
        return Limits(
            money=None if self.cost is None else round(self.cost * MILLION),
            tokens=self.tokens,
            millis=None if self.time is None else round(self.time * 1000),
        )


@record
class WebSettings:
    """Who is asked when an agent searches the web, and which `ports` are reached beside the web's own. `local` are
    hosts with their ports that are reached although they are on this machine or in its network."""

    search: Literal["ddgs", "tavily", "searxng"] = "ddgs"
    searxng_url: Annotated[str, values.url] = ""
    local: Annotated[tuple[str, ...], values.places] = ()
    ports: Annotated[tuple[int, ...], values.ports] = ()


@record
class BrowserSettings:
    """The browser of agents: which Chromium, whether it is seen (None: where there is a screen), how many moves,
    seconds and tokens an errand has. `hosts` are reached beside those that it names: a name, or `*.domain`."""

    program: str = ""
    headless: Annotated[bool | None, values.switch] = None
    steps: int = 100
    seconds: float = 900.0
    tokens: int = 300_000
    hosts: Annotated[tuple[str, ...], values.hosts] = ()


@record
class SandboxSettings:
    """The walls around commands: those that hold here, or with `off` none, and then each command is asked about.
    `hosts` are what commands get to over the network, through a proxy; a name, or `*.domain` for all below one."""

    walls: Literal["auto", "off"] = "auto"
    hosts: Annotated[tuple[str, ...], values.hosts] = ()


@record
class CheckSettings:
    """A check that a project proposes: a command line, where it is run, how many seconds it may take."""

    run: str
    kind: Literal["test", "types", "lint", "build"] = "test"
    folder: str = "."
    seconds: float = 900.0


@record
class CopySettings:
    """What a copy of a workspace needs: a command line that is run in it once (`setup`), and how many seconds that may
    take. `lend` is read and not needed any more: all that git ignores is shown."""

    setup: str = ""
    seconds: float = 600.0
    lend: tuple[str, ...] = ()


@record
class Settings:
    """All settings. An empty model is none: what is at hand decides.

    With `execute_tool_confirm` every call of a tool is asked about, also one that only looks. `non_interactive` says
    that nobody is there to be asked anything. What nobody has answered after `approvals_expire` seconds is denied.
    """

    version: Annotated[int, values.version] = 1
    model: str = ""
    strong: str = ""
    fast: str = ""
    groups: Mapping[str, Group] = msgspec.field(default_factory=dict)
    providers: Mapping[str, ProviderSettings] = msgspec.field(default_factory=dict)
    prices: Mapping[str, Price] = msgspec.field(default_factory=dict)
    mcp: Mapping[str, Server] = msgspec.field(default_factory=dict)
    retry: Retry = Retry()
    limits: Caps = Caps()
    web: WebSettings = WebSettings()
    browser: BrowserSettings = BrowserSettings()
    language: Literal["en", "zh"] = "en"
    after_tool_call: Annotated[tuple[str, ...], values.folders] = ()
    execute_tool_confirm: bool = False
    non_interactive: bool = False
    approvals_expire: Annotated[float | None, values.patience] = None
    sandbox: SandboxSettings = SandboxSettings()
    checks: Mapping[str, CheckSettings] = msgspec.field(default_factory=dict)
    workspace: CopySettings = CopySettings()

    @property
    def patience(self) -> int | None:
        """Milliseconds that a question waits for its answer."""
        return None if self.approvals_expire is None else round(self.approvals_expire * 1000)


SERVER_KEYS: Final = (
    *("type", "command", "args", "env", "cwd", "url", "headers", "timeout", "start_timeout", "disabled", "read_only"),
)
"""What a server's own table may hold. In a project's .mcp.json the keys of other programs are passed over."""


SERVERS: Final = Mapping[str, Server]


def own_servers(value: Raw, source: str) -> Mapping[str, Server]:
    """The person's MCP servers by name."""
    for name, table in value.items():
        for key in table if isinstance(table, Mapping) else ():
            if key not in SERVER_KEYS:
                raise WorldFault(
                    f"{source}: there is no setting `{dotted(('mcp', name, key))}`. {meant(key, SERVER_KEYS)}"
                )
    return {server.name: server for server in servers({ROOT: value}, f"{source}, [mcp]", own=True)}


USUAL: Final[Mapping[object, values.Reader]] = {
    str: values.text,
    int: values.count,
    float: values.duration,
    bool: values.switch,
    tuple[str, ...]: values.texts,
}
"""How a field of this type is read, if it does not say otherwise."""


Key: TypeAlias = tuple[str, ...]
Raw: TypeAlias = Mapping[str, object]

LONGEST: Final = 1_000 * 1024
SHY: Final = {"key", "key_env", "headers"}
"""What may hold a secret, if only by mistake, is not repeated in a message."""


def read_toml(path: Path) -> Raw | None:
    """What stands in this file; None if there is none."""
    try:
        if not path.exists():
            return None
        content = read_inside(path, None, LONGEST)
    except WorldFault as fault:
        raise WorldFault(f"{path} {fault}.") from None
    except OSError as error:
        raise WorldFault(f"{path} cannot be read: {error.strerror}. Make it readable, or move it away.") from None
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise WorldFault(f"{path} is not UTF-8: byte {error.start} cannot be read. Save it as UTF-8.") from None
    except ValueError as error:  # also a whole number of thousands of digits
        said = str(error).replace("at end of document", "at the end of its last line")
        raise WorldFault(f"{path} is not TOML: {said}. Correct it there.") from None
    except RecursionError:
        raise WorldFault(f"{path} is nested too deeply. Write it flatter.") from None


def checked(raw: Raw, source: str, kind: type = Settings, above: Key = ()) -> dict[str, object]:
    """The same with every value as the record `kind` wants it. What is required may still stand in another layer."""
    known = get_type_hints(kind, include_extras=True)
    found: dict[str, object] = {}
    for key in sorted(raw, key=lambda key: key != "version"):  # what a newer version brings would look like mistakes
        if key not in known:
            raise WorldFault(f"{source}: there is no setting `{dotted((*above, key))}`. {meant(key, known)}")
        found[key] = fit(raw[key], source, known[key], (*above, key))
    return found


def meant(key: str, known: Collection[str]) -> str:
    """The nearest known name, or all of them."""
    near = get_close_matches(key, known, n=1)
    return f"Did you mean `{near[0]}`?" if near else f"There are: {', '.join(f'`{name}`' for name in known)}."


def fit(value: object, source: str, hint: object, key: Key) -> object:
    """One value, or one table, as the type of its field says: by its annotation, else as is usual for the type."""
    is_record = isinstance(hint, type) and issubclass(hint, msgspec.Struct)
    if not is_record and get_origin(hint) is not Mapping:
        return _read(value, source, hint, key)
    if not isinstance(value, Mapping):
        name = "mcp.NAME" if hint == SERVERS else dotted(key)
        raise WorldFault(f"{source}: `{dotted(key)}` is a table. Write [{name}] and its keys below.")
    if is_record:
        return checked(value, source, cast("type", hint), key)
    if hint == SERVERS:
        return own_servers(value, source)
    return {name: fit(inner, source, get_args(hint)[1], (*key, name)) for name, inner in value.items()}


def _read(value: object, source: str, hint: object, key: Key) -> object:
    if get_origin(hint) is Annotated:
        reader = cast("values.Reader", get_args(hint)[1])
    else:
        reader = values.one_of(*get_args(hint)) if get_origin(hint) is Literal else USUAL[hint]
    try:
        read = reader(value)
    except Unfit as unfit:
        said = "" if SHY & set(key) else f", not {short(value)}"
        raise WorldFault(f"{source}: `{dotted(key)}` must be {unfit}{said}.") from None
    return Secret(key[-2], str(read)) if key[0] == "providers" and key[-1] == "key" else read


def dotted(key: Key) -> str:
    """A key as it is written in a file."""
    return ".".join(
        part if part.isascii() and part.replace("-", "").replace("_", "").isalnum() else f'"{part}"' for part in key
    )


def short(value: object) -> str:
    """A value inside a message."""
    said = repr(value)
    return said if len(said) <= 60 else f"{said[:59]}…"


def as_table(value: object) -> Raw:
    """A table that was checked."""
    assert isinstance(value, Mapping)
    return value
