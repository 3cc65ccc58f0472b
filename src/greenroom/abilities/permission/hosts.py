"""Hosts as rules see them: what tightens reaches further than what loosens."""

from __future__ import annotations

from greenroom.core.base.hosts import USUAL, BadHost, Host, host, loosens, within

__all__ = ("USUAL", "BadHost", "Host", "host", "includes", "loosens", "tightens")


def tightens(pattern: Host, asked: Host) -> bool:
    """Whether a rule that tightens may be meant for this host: with all below it, on any port unless it names one."""
    if pattern.port and asked.port and pattern.port != asked.port:
        return False
    return within(pattern.name, asked.name) or asked.name.endswith(f".{pattern.name.removeprefix('*.')}")


def includes(strict: Host, loose: Host) -> bool:
    """Whether the one, a rule that tightens, stands for every host that the other stands for."""
    if strict.port and strict.port != loose.port:
        return False
    base = strict.name.removeprefix("*.")
    return (
        strict.name in {"*", loose.name}
        or loose.name.removeprefix("*.").endswith(f".{base}")
        or (loose.name == f"*.{base}")
    )
