"""What servers listed when a person looked at them: one file of theirs, so that a run knows tools without a start.

It is what the person has agreed to. A server whose settings are others than at that time has not been looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from greenroom.adapters.mcp.catalogue import Listed, Offer, Pin, offers, pins
from greenroom.app.servers.here import Found
from greenroom.app.settings.changing import change
from greenroom.app.settings.home import config_folder
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import encode, record

NAME: Final = "mcp.json"
MOST: Final = 4_000_000
"""Bytes of one listing. A model could not read a hundredth of it."""

LONGEST: Final = 100_000_000
AGAIN: Final = "Delete it; `greenroom mcp check` writes it anew."


@record
class Known:
    """One server's listing; `where` and `name` say whose it is, `digest` with which settings it was started."""

    where: str
    name: str
    digest: str
    listed: tuple[Listed, ...]

    @property
    def agreed(self) -> Mapping[str, Pin]:
        """What a person has agreed to."""
        return pins(self.listed)

    @property
    def offered(self) -> tuple[Offer, ...]:
        """What of it agents get."""
        return offers(self.name, self.listed)[0]


@record
class _Kept:
    version: int = 1
    servers: tuple[Known, ...] = ()


class Listings:
    """Reads the file anew each time: somebody at another terminal may have looked at a server meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def latest(self, found: Found) -> Known | None:
        """What was seen of it last, whatever its settings were."""
        return next((one for one in self._read() if _is(one, found)), None)

    def of(self, found: Found) -> Known | None:
        """What was seen of exactly this server."""
        last = self.latest(found)
        return last if last is not None and last.digest == found.server.digest else None

    def keep(self, found: Found, listed: tuple[Listed, ...]) -> None:
        """A person has seen this and agrees to it."""
        name, digest = found.server.name, found.server.digest
        new = Known(where=found.where, name=name, digest=digest, listed=listed)
        if len(encode(new)) > MOST:
            raise WorldFault(f"The MCP server {name!r} says more than {MOST // 1_000_000} MB about its tools.")
        change(self.path, lambda: _written((*(one for one in self._read() if not _is(one, found)), new)))

    def forget(self, found: Found) -> None:
        """It is not wanted any more."""
        if self.latest(found) is not None:
            change(self.path, lambda: _written(one for one in self._read() if not _is(one, found)))

    def _read(self) -> tuple[Known, ...]:
        try:
            if self.path.stat().st_size > LONGEST:
                raise WorldFault(f"{self.path} is too large. {AGAIN}")
            return msgspec.json.decode(self.path.read_bytes(), type=_Kept).servers
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise WorldFault(f"{self.path} cannot be read: {error.strerror}.") from None
        except (msgspec.DecodeError, RecursionError) as error:
            raise WorldFault(f"{self.path} is not as it was written ({error}). {AGAIN}") from None


def own_listings() -> Listings:
    """The person's file. $GREENROOM_CONFIG does not move it: what lies beside that file may be a stranger's."""
    return Listings(config_folder() / NAME)


def _written(servers: Iterable[Known]) -> str:
    return encode(_Kept(servers=tuple(servers))).decode()


def _is(known: Known, found: Found) -> bool:
    return (known.where, known.name) == (found.where, found.server.name)
