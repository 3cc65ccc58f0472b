"""All that can be set, as records: the one schema of files, environment and flags, and how a layer is checked by it.

Every fault names the source, the key, what is wrong and what to do.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping
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
    mcp: Annotated[Mapping[str, Server], OWN_SERVERS] = msgspec.field(default_factory=dict)
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


@record
class Table:
    """A table with known keys: the record that it becomes, and what each key holds."""

    record: type
    keys: Mapping[str, Shape]


@record
class Named:
    """A table whose keys a person chooses; all entries are alike."""

    entry: Table


@record
class Free:
    """A table of tables with a form of its own: `read` takes it and the name of its source, and says what is wrong."""

    read: Callable[[object, str], Mapping[str, object]]


Shape = Table | Named | Free | values.Reader


SERVER_KEYS: Final = (
    *("type", "command", "args", "env", "cwd", "url", "headers", "timeout", "start_timeout", "disabled", "read_only"),
)
"""What a server's own table may hold. In a project's .mcp.json the keys of other programs are passed over."""


def own_servers(value: object, source: str) -> Mapping[str, Server]:
    """The person's MCP servers by name."""
    if not isinstance(value, Mapping):
        raise WorldFault(f"{source}: `mcp` is a table. Write [mcp.NAME] and its keys below.")
    for name, table in value.items():
        for key in table if isinstance(table, Mapping) else ():
            if key not in SERVER_KEYS:
                raise WorldFault(
                    f"{source}: there is no setting `{dotted(('mcp', name, key))}`. {meant(key, SERVER_KEYS)}"
                )
    return {server.name: server for server in servers({ROOT: value}, f"{source}, [mcp]", own=True)}


OWN_SERVERS: Final = Free(read=own_servers)
USUAL: Final[Mapping[object, values.Reader]] = {
    str: values.text,
    int: values.count,
    float: values.duration,
    bool: values.switch,
    tuple[str, ...]: values.texts,
}
"""How a field of this type is read, if it does not say otherwise."""


def table(kind: type) -> Table:
    """The table that becomes this record: each field says by its type, or by its annotation, how it is read."""
    return Table(
        record=kind,
        keys={name: _shape(hint) for name, hint in get_type_hints(kind, include_extras=True).items()},
    )


def _shape(hint: object) -> Shape:
    if get_origin(hint) is Annotated:
        return cast("Shape", get_args(hint)[1])
    if get_origin(hint) is Literal:
        return values.one_of(*get_args(hint))
    if get_origin(hint) is Mapping:
        return Named(entry=table(get_args(hint)[1]))
    return USUAL[hint] if hint in USUAL else table(cast("type", hint))


SCHEMA: Final = table(Settings)

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


def checked(raw: Raw, source: str, table: Table = SCHEMA, above: Key = ()) -> dict[str, object]:
    """The same with every value as the schema wants it. What is required may still stand in another layer."""
    first = sorted(raw, key=lambda key: key != "version")  # what a newer version brings would only look like mistakes
    return {key: fit(raw[key], source, shape_of(table, key, source, above), (*above, key)) for key in first}


def shape_of(table: Table, key: str, source: str, above: Key) -> Shape:
    """What this key holds."""
    found = table.keys.get(key)
    if found is None:
        raise WorldFault(f"{source}: there is no setting `{dotted((*above, key))}`. {meant(key, table.keys)}")
    return found


def meant(key: str, known: Collection[str]) -> str:
    """The nearest known name, or all of them."""
    near = get_close_matches(key, known, n=1)
    return f"Did you mean `{near[0]}`?" if near else f"There are: {', '.join(f'`{name}`' for name in known)}."


def fit(value: object, source: str, shape: Shape, key: Key) -> object:
    """One value, or one table."""
    if isinstance(shape, Free):
        return shape.read(value, source)
    if not isinstance(shape, Table | Named):
        try:
            read = shape(value)
            return Secret(key[-2], str(read)) if key[0] == "providers" and key[-1] == "key" else read
        except Unfit as unfit:
            said = "" if SHY & set(key) else f", not {short(value)}"
            raise WorldFault(f"{source}: `{dotted(key)}` must be {unfit}{said}.") from None
    if not isinstance(value, Mapping):
        raise WorldFault(f"{source}: `{dotted(key)}` is a table. Write [{dotted(key)}] and its keys below.")
    if isinstance(shape, Table):
        return checked(value, source, shape, key)
    return {name: fit(one, source, shape.entry, (*key, name)) for name, one in value.items()}


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
