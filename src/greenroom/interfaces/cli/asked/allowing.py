"""What a person can ask about what agents may have and do: tools, servers, rules, trust. See also `orders`."""

from __future__ import annotations

from typing import TypeAlias

from greenroom.core.base.records import record


@record
class ToolsList:
    """All that agents can have here."""


@record
class ToolsShow:
    """One of them."""

    name: str


@record
class ToolsRun:
    """Call one: `given` are NAME=VALUE, or one JSON object in `whole`."""

    name: str
    given: tuple[str, ...]
    whole: str


@record
class Trust:
    """What a workspace brings: list it, agree to it (`yes`: without being asked), or take all of that back."""

    yes: bool
    only_list: bool
    revoke: bool


@record
class PermissionsList:
    """All rules."""


@record
class PermissionsAdd:
    """Agree to a rule, here or everywhere."""

    rule: str
    everywhere: bool


@record
class PermissionsRemove:
    """Agree to it no more."""

    rule: str
    everywhere: bool


@record
class McpAdd:
    """A server of one's own: `words` are its command or its address. With `force` also one that does not work."""

    name: str
    words: tuple[str, ...]
    env: tuple[str, ...]
    headers: tuple[str, ...]
    read_only: tuple[str, ...]
    cwd: str
    timeout: float | None
    start_timeout: float | None
    force: bool


@record
class McpList:
    """All servers here."""


@record
class McpRemove:
    """One of one's own."""

    name: str


@record
class McpCheck:
    """One, or (empty) all; `yes` agrees to what has changed."""

    name: str
    yes: bool


Mcp: TypeAlias = McpAdd | McpList | McpRemove | McpCheck
Permissions: TypeAlias = PermissionsList | PermissionsAdd | PermissionsRemove
Allowing: TypeAlias = Mcp | ToolsList | ToolsShow | ToolsRun | Trust | Permissions
