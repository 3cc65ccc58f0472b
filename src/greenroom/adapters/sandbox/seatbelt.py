"""The macOS tier: a profile for `sandbox-exec`. It follows the documentation and was never tested on a Mac."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from greenroom.adapters.sandbox.protection import GIT_CONTROL_FILES
from greenroom.adapters.sandbox.session import SandboxSession
from greenroom.adapters.sandbox.view import SandboxView, find_identity, find_secrets
from greenroom.core.ports.sandbox import CommandLimits, SandboxedCommand, Tier

SANDBOX_EXEC: Final = "/usr/bin/sandbox-exec"
BASE_PROFILE: Final = """\
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
    """A sandbox for one workspace. There is no network, and limits apply to single processes only."""

    tier: Tier = "seatbelt"

    def __init__(self, view: SandboxView, limits: CommandLimits) -> None:
        super().__init__(view, limits, find_identity(view.root, swaps=False))

    def build_command(
        self, token: str, words: tuple[str, ...], folder: str, env: Mapping[str, str], _: str
    ) -> SandboxedCommand:
        """Return the command with its profile."""
        return SandboxedCommand(
            words=(SANDBOX_EXEC, "-p", self.render_profile(env), *words),
            folder=folder,
            env={**env, "HOME": str(self.scratch.home), "TMPDIR": str(self.scratch.tmp)},
            token=token,
            rlimits=self.rlimits,
        )

    def render_profile(self, env: Mapping[str, str]) -> str:
        """Render the profile. The last matching rule decides."""
        return BASE_PROFILE + "".join(f"{line}\n" for line in self._list_rules(env))

    def _list_rules(self, env: Mapping[str, str]) -> Iterator[str]:
        yield f"(allow {'file-read*' if self.view.read_only else 'file*'} (subpath {_quote(str(self.view.root))}))"
        for place in (self.scratch.home, self.scratch.tmp):
            yield f"(allow file* (subpath {_quote(str(place))}))"
        for place in self.find_tools(env):
            yield f"(allow file-read* (subpath {_quote(str(place))}))"
            yield from (f"(deny file* (subpath {_quote(str(secret))}))" for secret in find_secrets(place))
        for path in self.protection.list_governing():
            yield f"(deny file-write* (subpath {_quote(str(path))}))"
        for place in self.protection.find_git_folders():
            for name in GIT_CONTROL_FILES:
                yield f"(deny file-write* (subpath {_quote(str(place / name))}))"
        for place in self.view.hidden:
            yield f"(deny file* (subpath {_quote(str(place))}))"


def _quote(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
