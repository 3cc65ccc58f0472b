"""A person with a home and a project in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from greenroom.app.settings.layers import LoadedSettings, load_settings


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where settings can be. They are still empty."""

    home: Path
    project: Path

    @property
    def user_file(self) -> Path:
        return self.home / ".config" / "greenroom" / "config.toml"

    def user(self, text: str) -> Path:
        return written(self.user_file, text)

    def shared(self, text: str) -> Path:
        return written(self.project / ".greenroom" / "config.toml", text)

    def local(self, text: str) -> Path:
        return written(self.project / ".greenroom" / "config.local.toml", text)

    def load(self, cwd: Path | None = None, environ: dict[str, str] | None = None, **flags: object) -> LoadedSettings:
        dotted = {name.replace("__", "."): value for name, value in flags.items()}
        return load_settings(dotted, {"HOME": str(self.home), **(environ or {})}, cwd or self.project)


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o600)
    return path
