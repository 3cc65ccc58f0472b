"""Where a provider is: on this machine, or elsewhere."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from greenroom.core.base.errors import WorldFault


def is_local(base_url: str) -> bool:
    """Whether the address is on this machine."""
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise WorldFault(f"{base_url!r} is no address of a provider. It begins with https:// and often ends in /v1.")
    try:
        return ipaddress.ip_address(parts.hostname).is_loopback
    except ValueError:
        return parts.hostname == "localhost"
