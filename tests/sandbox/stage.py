"""The stage of one attempt: a workspace, surrounded by everything that the attempt must not touch.

The surroundings are open to all users (modes 0777 and 0666), so that the sandbox protects them, not their owner.
Nothing is left at the end.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.conformance.running import marked

BEFORE: Final = "as it was before\n"
PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
FOLDERS: Final = ("work", "outside", "home", "other")
NAME: Final = re.compile(r"@([a-z_]+)@")


class Stage:
    """A stage. `work` is the workspace; `outside`, `home` and `other` (another workspace) are beside it."""

    def __init__(self, base: Path, prop: Mapping[str, Callable[[Stage], str]]) -> None:
        self.base = base
        self.work, self.outside, self.home, self.other = (base / name for name in FOLDERS)
        self.token = secrets.token_hex(8)
        self.secret = f"sesame-{secrets.token_hex(12)}"
        self.canaries: dict[str, socket.socket] = {}
        self.victim: subprocess.Popen[str] | None = None
        self.careful = False
        """Whether Greenroom uses a sandbox and opens files with care."""

        self._prop = prop
        self._values: dict[str, str] = {}
        self._end = ExitStack()

    @property
    def own(self) -> dict[str, str]:
        """Return Greenroom's own environment, with its keys."""
        return {
            "PATH": PATH,
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "OPENAI_API_KEY": self.secret,
            "SSH_AUTH_SOCK": str(self.home / "agent.sock"),
        }

    def fill(self, text: str) -> str:
        """Fill in the @names@ of a text. Each prop is made on first use."""
        return NAME.sub(lambda found: self.value(found[1]), text)

    def value(self, name: str) -> str:
        if name not in self._values:
            self._values[name] = self._prop[name](self)
        return self._values[name]

    def afterwards(self, undo: Callable[[], object]) -> None:
        """Register an undo function for the end."""
        self._end.callback(undo)

    def put(self, path: Path, text: str = "") -> Path:
        """Write a file that all users may read and write, with such folders."""
        for folder in reversed([one for one in path.parents if one.is_relative_to(self.base)]):
            if not folder.exists():
                folder.mkdir()
                folder.chmod(0o777)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o666)
        return path

    def close(self) -> None:
        for pid in marked(self.token):
            with suppress(ProcessLookupError):
                os.kill(pid, 9)
        self._end.close()
        for canary in self.canaries.values():
            canary.close()
        subprocess.run(["chmod", "-R", "u+rwX", str(self.base)], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.base, ignore_errors=True)


@contextmanager
def staged(prop: Mapping[str, Callable[[Stage], str]]) -> Iterator[Stage]:
    """Open a stage, and remove it at the end."""
    base = Path(tempfile.mkdtemp(prefix="escape-"))
    base.chmod(0o755)
    stage = Stage(base, prop)
    try:
        _furnish(stage)
        yield stage
    finally:
        stage.close()
    assert not base.exists(), f"{base} could not be taken away"


def _furnish(stage: Stage) -> None:
    for folder in (stage.outside, stage.home, stage.other):
        folder.mkdir()
        folder.chmod(0o777)
    stage.work.mkdir()
    stage.put(stage.outside / "victim.txt", BEFORE)
    stage.put(stage.outside / "secret.txt", f"{stage.secret}\n")
    stage.put(stage.other / "notes.md", f"{stage.secret}\n")
    for name in (".bashrc", ".profile"):
        stage.put(stage.home / name, BEFORE)
    for name in (".ssh/id_ed25519", ".aws/credentials", ".netrc", ".git-credentials"):
        stage.put(stage.home / name, f"{stage.secret}\n")
    for name in (".config/greenroom/config.toml", ".config/greenroom/keys.toml", ".local/share/greenroom/log.sqlite"):
        stage.put(stage.home / name, f"key = '{stage.secret}'\n")
    stage.put(stage.home / ".gitconfig", "[safe]\n\tdirectory = *\n[user]\n\tname = P\n\temail = p@example.org\n")
