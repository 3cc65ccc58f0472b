"""A person with a home, a project in it, and agents in both."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from greenroom.app.agents.discovery import Agents, find_agents
from greenroom.core.state.spec import AgentSpec


@dataclass(frozen=True, kw_only=True)
class Folders:
    """The folders where agents can be. They are still empty."""

    home: Path
    project: Path

    @property
    def ours(self) -> Path:
        return self.project / ".greenroom" / "agents"

    @property
    def yours(self) -> Path:
        return self.home / ".config" / "greenroom" / "agents"

    @property
    def claudes(self) -> Path:
        return self.project / ".claude" / "agents"

    @property
    def your_claudes(self) -> Path:
        return self.home / ".claude" / "agents"

    def found(self) -> Agents:
        return find_agents(self.project)

    def agent(self, front: str, body: str = "Do it.", name: str = "ann") -> AgentSpec:
        """Load the agent from a user file with this front matter."""
        written(self.yours / f"{name}.md", f"---\n{front}\n---\n{body}\n")
        return self.found().get(name).spec

    def trouble(self, front: str, body: str = "Do it.", *, folder: Path | None = None) -> str:
        """Return the error about a file with this front matter."""
        path = written((folder or self.yours) / "ann.md", f"---\n{front}\n---\n{body}\n")
        (trouble,) = self.found().broken_files
        assert trouble.text.startswith(str(path))
        return trouble.text.removeprefix(str(path))


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path
