"""A person with a home and a workspace, and MCP servers in both."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from greenroom.adapters.mcp.client import McpTimeouts
from greenroom.app.settings.layers import load_settings
from greenroom.app.settings.schema import Settings
from greenroom.app.toolset.mcp import (
    FoundServer,
    ServerInspection,
    UserSettingsFile,
    build_server_environment,
    inspect_server,
    list_servers,
    load_server_tools,
)
from greenroom.app.toolset.toolbox import ToolSource
from greenroom.app.trust import TrustItem
from tests.adapters.mcp.running import RAW, TOKEN

QUICK = McpTimeouts(start=20.0, alive=0.5)


def everybody(_: TrustItem) -> bool:
    return True


def nobody(_: TrustItem) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class Place:
    """`root` is the workspace, `folder` where the raw server records its actions."""

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
        return load_settings({}, self.environ, self.root).settings

    def table(self, mode: str = "polite", **more: object) -> dict[str, object]:
        """Return the settings of the raw server. Its processes carry the folder's name."""
        args = [RAW, mode, str(self.folder)]
        return {"command": sys.executable, "args": args, "env": {TOKEN: self.folder.name}, **more}

    def own(self, name: str = "raw", mode: str = "polite", **more: object) -> FoundServer:
        """Add a server to the person's settings."""
        UserSettingsFile(self.config / "config.toml").add(name, self.table(mode, **more))
        return self.named(name)

    def project(self, **tables: object) -> None:
        """Add servers to the workspace."""
        (self.root / ".mcp.json").write_text(json.dumps({"mcpServers": tables}))

    def named(self, name: str = "raw") -> FoundServer:
        return list_servers(self.root, self.settings).get(name)

    async def look(self, found: FoundServer, **environ: str) -> ServerInspection:
        around = build_server_environment(found, self.root, {**self.environ, **environ}, self.settings)
        return await inspect_server(found, around, patience=QUICK)

    def equipment(
        self,
        trusted: Callable[[TrustItem], bool] = nobody,
        *,
        tell: Callable[[str], None] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> ToolSource:
        around = {**self.environ, **(environ or {})}
        return load_server_tools(self.root, around, self.settings, trusted, tell=tell, patience=QUICK)
