"""Walls of macOS: a profile for `sandbox-exec`. Nobody of us has a Mac: it is written by the book, and unverified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from greenroom.adapters.sandbox.ground import Ground, identity, secrets_in
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


class Seatbelt(SandboxSession):
    """Around one workspace. There is no network, and limits are those of single processes only."""

    tier: Tier = "seatbelt"

    def __init__(self, ground: Ground, limits: Limits) -> None:
        super().__init__(ground, limits, identity(ground.root, swaps=False))

    def enclosed(self, token: str, words: tuple[str, ...], folder: str, env: Mapping[str, str], _: str) -> Enclosed:
        """The command under a profile."""
        return Enclosed(
            words=(PROGRAM, "-p", self.profile(env), *words),
            folder=folder,
            env={**env, "HOME": str(self.scratch.home), "TMPDIR": str(self.scratch.tmp)},
            token=token,
            rlimits=self.rlimits,
        )

    def profile(self, env: Mapping[str, str]) -> str:
        """What may be done; the last rule that fits counts."""
        return BEGINNING + "".join(f"{line}\n" for line in self._rules(env))

    def _rules(self, env: Mapping[str, str]) -> Iterator[str]:
        for place in (self.ground.root, self.scratch.home, self.scratch.tmp):
            yield f"(allow file* (subpath {_quoted(str(place))}))"
        for place in self.tools(env):
            yield f"(allow file-read* (subpath {_quoted(str(place))}))"
            yield from (f"(deny file* (subpath {_quoted(str(one))}))" for one in secrets_in(place))
        for path in self.protection.governing():
            yield f"(deny file-write* (subpath {_quoted(str(path))}))"
        for place in self.protection.git_folders():
            for name in GIT:
                yield f"(deny file-write* (subpath {_quoted(str(place / name))}))"
        for place in self.ground.hidden:
            yield f"(deny file* (subpath {_quoted(str(place))}))"


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
