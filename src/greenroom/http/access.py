"""Who may use the server: the token for programs, login codes, and the sessions of browsers.

All three are in one file of the home that only its owner can read. Codes and sessions are kept as hashes. Any process
that can read the file may make a login code; the running server finds it there.
"""

from __future__ import annotations

import hmac
import os
import secrets
import shlex
import stat
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from greenroom.app.settings.home import RecordFile
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve, record

CODE_LIFETIME_S: Final = 600
SESSION_LIFETIME_S: Final = 30 * 24 * 3600
MAX_CODES: Final = 20
MAX_SESSIONS: Final = 100
"""How many of each are valid at once. The oldest give way."""

SECRET_BYTES: Final = 32
OTHERS: Final = 0o077


@record
class AccessData:
    """The content of the file: the token, and the hashes of login codes and sessions with their last second."""

    version: int = 1
    token: str = ""
    codes: Mapping[str, int] = {}
    sessions: Mapping[str, int] = {}


class AccessFile:
    """The file with the token, the login codes and the sessions of the servers of one home."""

    def __init__(self, home: Path, now: Callable[[], float] = time.time) -> None:
        self.path = home / "server" / "access.json"
        self._file = RecordFile(self.path, AccessData, "server.access_file", "server.access_advice")
        self._now = now
        self._sessions: Mapping[str, int] = {}
        self.token = ""

    def open(self) -> None:
        """Read the file, or create it with a new token. Raise `WorldFault` if others can read it."""
        self._change(lambda data: data)

    def make_code(self) -> str:
        """Return a new login code. It is valid once, for ten minutes."""
        code = secrets.token_urlsafe(SECRET_BYTES)
        expiry = {_hash(code): int(self._now()) + CODE_LIFETIME_S}
        self._change(lambda data: evolve(data, codes=_keep_newest({**data.codes, **expiry}, MAX_CODES)))
        return code

    def start_session(self, code: str) -> str | None:
        """Exchange a login code for the id of a new session; None if the code is not valid or no longer."""
        session, name = secrets.token_urlsafe(SECRET_BYTES), _hash(code)
        was_valid = False

        def exchange(data: AccessData) -> AccessData:
            nonlocal was_valid
            was_valid = name in data.codes  # another request may have used it meanwhile
            sessions = {**data.sessions, _hash(session): int(self._now()) + SESSION_LIFETIME_S} if was_valid else {}
            codes = {key: until for key, until in data.codes.items() if key != name}
            return evolve(data, codes=codes, sessions=_keep_newest(sessions or data.sessions, MAX_SESSIONS))

        self._change(exchange)
        return session if was_valid else None

    def end_session(self, session: str) -> None:
        """End a session, if it is one."""
        ended = _hash(session)
        self._change(
            lambda data: evolve(data, sessions={key: until for key, until in data.sessions.items() if key != ended})
        )

    def is_session(self, session: str) -> bool:
        """Return whether a browser has this session."""
        return self._sessions.get(_hash(session), 0) > self._now()

    def is_token(self, token: str) -> bool:
        """Return whether this is the token for programs."""
        return bool(self.token) and hmac.compare_digest(token.encode(), self.token.encode())

    def _change(self, update: Callable[[AccessData], AccessData]) -> None:
        """Change the file under its lock, without what has expired."""
        changed = AccessData()

        def refresh(data: AccessData) -> AccessData:
            nonlocal changed
            self._refuse_shared()
            now = self._now()
            changed = update(
                AccessData(
                    token=data.token or secrets.token_urlsafe(SECRET_BYTES),
                    codes={key: until for key, until in data.codes.items() if until > now},
                    sessions={key: until for key, until in data.sessions.items() if until > now},
                )
            )
            return changed

        self._refuse_shared()
        self._file.change(refresh)
        self.token, self._sessions = changed.token, changed.sessions

    def _refuse_shared(self) -> None:
        """Raise `WorldFault` if the file is a link, is not ours, or can be read by others."""
        try:
            found = self.path.lstat()
        except FileNotFoundError:
            return
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
            raise WorldFault("server.access_file_foreign", path=self.path)
        if found.st_mode & OTHERS:
            command = f"rm {shlex.quote(str(self.path))}"
            raise WorldFault("server.access_file_readable", path=self.path, command=command)


def _hash(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def _keep_newest(entries: Mapping[str, int], count: int) -> Mapping[str, int]:
    newest = sorted(entries.items(), key=lambda entry: entry[1], reverse=True)[:count]
    return dict(newest)
