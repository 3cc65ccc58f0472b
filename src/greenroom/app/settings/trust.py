"""What a project's files may not say. They come with a clone, so they are a stranger's word: they must not learn a key,
nor send what a person writes, or their key, to an address of its choice, nor spend more than the person would, nor
name code that is run.
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address
from typing import Final, cast
from urllib.parse import urlsplit

from greenroom.adapters.models.catalog.catalog import providers
from greenroom.app.settings.reading import Key, Raw, as_table, dotted
from greenroom.app.settings.schema import Caps
from greenroom.core.base.errors import WorldFault

OWN: Final = ("key", "key_env", "headers")


def refuse_strangers(raw: Raw, source: str, yours: Raw, user_file: str) -> None:
    """`WorldFault` for the first thing that a project may not set. `yours` is what the user's file says."""
    if "mcp" in raw:
        raise WorldFault(
            f"{source}: a project may not set `mcp`, because it decides which programs are started. "
            "Put it into .mcp.json, which `greenroom trust` shows to whoever uses the project."
        )
    if "web" in raw:
        raise refused(source, ("web",), "decides who reads what you search for, and what is reached", user_file)
    if "browser" in raw:
        raise refused(source, ("browser",), "decides which program is started, and what it reaches", user_file)
    if "after_tool_call" in raw:
        raise refused(source, ("after_tool_call",), "names code that would be run", user_file)
    _refuse_spending(raw, source, as_table(yours.get("limits", {})), user_file)
    _refuse_providers(raw, source, as_table(yours.get("providers", {})), user_file)
    if raw.get("execute_tool_confirm") is False:  # it may want more to be asked, never less
        raise refused(source, ("execute_tool_confirm",), "decides what you are asked", user_file)
    if "sandbox" in raw:
        raise refused(source, ("sandbox",), "decides which walls are around commands, and what those reach", user_file)
    if "non_interactive" in raw:
        raise refused(source, ("non_interactive",), "decides whether you are asked at all", user_file)
    if "approvals_expire" in raw:
        raise refused(source, ("approvals_expire",), "decides how long you have for an answer", user_file)


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
