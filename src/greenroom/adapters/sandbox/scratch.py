"""A folder for /tmp, /etc and home of commands, for as long as the walls stand."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from greenroom.adapters.sandbox.identity import Identity
from greenroom.adapters.sandbox.own_folder import OwnFolder

IDENTITY: Final = """\
[user]
\tname = {name}
\temail = {email}
[init]
\tdefaultBranch = main
"""
IGNORED: Final = "/.mcp.json\n"
"""What walls put there so that nobody can, and nobody should commit."""


class Scratch:
    """Made below `folder`, which is nobody else's."""

    def __init__(self, folder: Path, *, name: str = "Greenroom agent", email: str = "agent@greenroom.invalid") -> None:
        self._folder = OwnFolder(folder)
        self.place = self._folder.place
        self.home = self.place / "home"
        self.tmp = self.place / "tmp"
        self.etc = self.place / "etc"
        self.nothing = self.place / "nothing"
        for one in (self.home, self.tmp):
            one.mkdir(mode=0o700)
        self.nothing.touch(mode=0o444)
        ignored = self.home / ".config" / "git"
        ignored.mkdir(parents=True)
        (ignored / "ignore").write_text(IGNORED, encoding="utf-8")
        clean = {"name": name.replace("\n", " "), "email": email.replace("\n", " ")}
        (self.home / ".gitconfig").write_text(IDENTITY.format(**clean), encoding="utf-8")

    def give(self, who: Identity) -> None:
        """What is for writing belongs to this one."""
        if who.changes and not who.swapped:
            for one in (self.tmp, self.home, *self.home.rglob("*")):
                os.chown(one, who.uid, who.gid)

    def close(self) -> None:
        """Remove it, once."""
        self._folder.close()
