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


Allowing: TypeAlias = ToolsList | ToolsShow | PermissionsList | PermissionsAdd | PermissionsRemove
