"""A person with a home and a workspace, and MCP servers in both."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from greenroom.adapters.mcp.client import Patience
from greenroom.app.settings.layers import load
from greenroom.app.settings.schema import Settings
from greenroom.app.toolset.mcp import Found, OwnFile, Seen, equipment_of, look, servers_in, surroundings
from greenroom.app.toolset.toolbox import Equipment
from greenroom.app.trust import Brought
from tests.adapters.mcp.running import RAW, TOKEN

QUICK = Patience(start=20.0, alive=0.5)


def everybody(_: Brought) -> bool:
    return True


def nobody(_: Brought) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class Place:
    """`root` is the workspace, `folder` where the raw server keeps what it does."""

    home: Path
    root: Path
    folder: Path

    @property
    def config(self) -> Path:
        return self.home / ".config" / "greenroom"

    @property
    def environ(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": os.environ["PATH"]}

    @property
    def settings(self) -> Settings:
        return load({}, self.environ, self.root).settings

    def table(self, mode: str = "polite", **more: object) -> dict[str, object]:
        """The raw server; its processes carry the folder's name."""
        args = [RAW, mode, str(self.folder)]
        return {"command": sys.executable, "args": args, "env": {TOKEN: self.folder.name}, **more}

    def own(self, name: str = "raw", mode: str = "polite", **more: object) -> Found:
        """Put a server into the person's settings."""
        OwnFile(self.config / "config.toml").add(name, self.table(mode, **more))
        return self.named(name)

    def project(self, **tables: object) -> None:
        """What the workspace brings."""
        (self.root / ".mcp.json").write_text(json.dumps({"mcpServers": tables}))

    def named(self, name: str = "raw") -> Found:
        return servers_in(self.root, self.settings).named(name)

    async def look(self, found: Found, **environ: str) -> Seen:
        around = surroundings(found, self.root, {**self.environ, **environ}, self.settings)
        return await look(found, around, patience=QUICK)

    def equipment(
        self,
        trusted: Callable[[Brought], bool] = nobody,
        *,
        tell: Callable[[str], None] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Equipment:
        around = {**self.environ, **(environ or {})}
        return equipment_of(self.root, around, self.settings, trusted, tell=tell, patience=QUICK)
