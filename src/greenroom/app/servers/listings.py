"""What servers listed when a person looked at them: one file of theirs, so that a run knows tools without a start.

It is what the person has agreed to. A server whose settings are others than at that time has not been looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from greenroom.adapters.mcp.offers import Listed
from greenroom.adapters.mcp.pins import Pin, pins
from greenroom.app.servers.here import Found
from greenroom.app.settings.home import config_folder
from greenroom.app.settings.keys import locked, replace
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
        with alone(self.path.parent):
            self._write((*(one for one in self._read() if not _is(one, found)), new))

    def forget(self, found: Found) -> None:
        """It is not wanted any more."""
        if self.latest(found) is not None:
            with alone(self.path.parent):
                self._write(tuple(one for one in self._read() if not _is(one, found)))

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

    def _write(self, servers: tuple[Known, ...]) -> None:
        replace(self.path, encode(_Kept(servers=servers)).decode())


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Nobody else of us writes in this folder meanwhile; `WorldFault` where nothing can be written."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(folder):
            yield
    except OSError as error:
        raise WorldFault(f"In {folder} nothing can be written: {error.strerror or error}.") from None


def own_listings() -> Listings:
    """The person's file. $GREENROOM_CONFIG does not move it: what lies beside that file may be a stranger's."""
    return Listings(config_folder() / NAME)


def _is(known: Known, found: Found) -> bool:
    return (known.where, known.name) == (found.where, found.server.name)
