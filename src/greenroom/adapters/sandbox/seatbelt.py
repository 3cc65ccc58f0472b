"""Walls of macOS: a profile for `sandbox-exec`. Nobody of us has a Mac: it is written by the book, and unverified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from greenroom.adapters.sandbox.ground import Ground, identity, secrets_in
from greenroom.adapters.sandbox.limits import Cgroups
from greenroom.adapters.sandbox.protection import GIT
from greenroom.adapters.sandbox.session import SandboxSession
from greenroom.core.ports.sandbox import Enclosed, Limits, Tier

PROGRAM: Final = "/usr/bin/sandbox-exec"
BEGINNING: Final = """\
(version 1)
(deny default)
(allow process-fork)
(allow process-exec)
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow file-read-metadata)
(allow file-read* (subpath "/usr") (subpath "/bin") (subpath "/sbin") (subpath "/System") (subpath "/Library"))
(allow file-read* (subpath "/opt") (subpath "/private/etc/ssl") (literal "/private/etc/localtime") (literal "/"))
(allow file-read* (subpath "/Applications/Xcode.app") (subpath "/private/var/db/timezone"))
(allow file* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty"))
(allow file-read* (literal "/dev/random") (literal "/dev/urandom"))
"""


class Seatbelt:
    """Around one workspace. There is no network, and limits are those of single processes only."""

    def __init__(self, ground: Ground, limits: Limits) -> None:
        self._ground = ground
        self._session = SandboxSession(ground, limits, Cgroups(limits, ()), identity(ground.root, swaps=False))
        self._scratch = self._session.scratch

    @property
    def tier(self) -> Tier:
        """What macOS has."""
        return "seatbelt"

    def around(self, words: tuple[str, ...], folder: str, env: Mapping[str, str], _: str = "") -> Enclosed:
        """The command under a profile."""
        joined = self._session.begin()
        try:
            profile = self.profile(env)
        except BaseException:
            self._session.end(joined.token)
            raise
        return Enclosed(
            words=(PROGRAM, "-p", profile, *words),
            folder=folder,
            env={**env, "HOME": str(self._scratch.home), "TMPDIR": str(self._scratch.tmp)},
            token=joined.token,
            rlimits=self._session.rlimits,
        )

    def profile(self, env: Mapping[str, str]) -> str:
        """What may be done; the last rule that fits counts."""
        return BEGINNING + "".join(f"{line}\n" for line in self._rules(env))

    def overrun(self, enclosed: Enclosed, guard: int) -> str:
        """Why it has used too much."""
        return self._session.overrun(enclosed.token, guard)

    def tidy(self, enclosed: Enclosed) -> None:
        """Whatever it left that could run something."""
        self._session.end(enclosed.token)

    def close(self) -> None:
        """What commands had for themselves goes with the walls."""
        self._session.close()

    def _rules(self, env: Mapping[str, str]) -> Iterator[str]:
        for place in (self._ground.root, self._scratch.home, self._scratch.tmp):
            yield f"(allow file* (subpath {_quoted(str(place))}))"
        for place in self._session.tools(env):
            yield f"(allow file-read* (subpath {_quoted(str(place))}))"
            yield from (f"(deny file* (subpath {_quoted(str(one))}))" for one in secrets_in(place))
        for path in self._session.protection.governing():
            yield f"(deny file-write* (subpath {_quoted(str(path))}))"
        for place in self._session.protection.git_folders():
            for name in GIT:
                yield f"(deny file-write* (subpath {_quoted(str(place / name))}))"
        for place in self._ground.hidden:
            yield f"(deny file* (subpath {_quoted(str(place))}))"


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
