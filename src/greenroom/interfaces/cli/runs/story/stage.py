"""Where the story is played: one folder with the repository, the log, the copies and the settings; all of it stays."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

from greenroom.app.hands.walls import KNOWN, Tier, Wish, strongest
from greenroom.app.settings.home import VARIABLE
from greenroom.core.base.records import record
from greenroom.testing.story import shop

MODEL: Final = "scripted:coder"
SETTINGS: Final = """\
# The model of the demo: a script, served on this machine while the demo ran.
model = "{model}"

[providers.scripted]
base_url = "{address}"

[prices."{model}"]
input = 0
output = 0
"""
CACHE, CONFIG, SANDBOX = "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "GREENROOM_SANDBOX"
NEAR: Final = "127.0.0.1,localhost"
UNWRITTEN: Final = "PYTHONDONTWRITEBYTECODE"


@record
class Stage:
    """The `folder` and what is in it. `environment` is what the commands of the story have around them, `tier` what
    theirs run behind."""

    folder: Path
    tier: Tier
    environment: Mapping[str, str]

    @property
    def shop(self) -> Path:
        """The person's repository."""
        return self.folder / "shop"

    @property
    def home(self) -> Path:
        """The log."""
        return self.folder / "home"

    @property
    def exports(self) -> tuple[str, ...]:
        """What a shell has to know so that commands typed there find what the demo has left."""
        return tuple(f"{name}={self.environment[name]}" for name in (VARIABLE, CACHE, CONFIG))


def set_up(chosen: Path | None, address: str) -> Stage:
    """A new folder, or the one that was `chosen`; with a model that is asked at this address."""
    folder = chosen.absolute() if chosen else Path(tempfile.mkdtemp(prefix="greenroom-demo-"))
    wish: Wish = "off" if os.environ.get(SANDBOX) == "off" else "auto"
    walls = strongest(wish)
    stage = Stage(folder=folder, tier=walls.tier, environment=_environment(folder, wish))
    settings = folder / "config" / "greenroom" / "config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(SETTINGS.format(model=MODEL, address=address), encoding="utf-8")
    _tell_of_walls(folder / "cache" / "greenroom")
    shop.made(stage.shop, shop.found_pytest())
    return stage


def _environment(folder: Path, wish: Wish) -> dict[str, str]:
    """The person's own, except for what is Greenroom's, git's or a key: nothing of theirs is used or changed."""
    kept = {
        name: value
        for name, value in shop.surroundings().items()
        if not name.startswith("GREENROOM_") and not name.endswith(("_KEY", "_TOKEN")) and name != UNWRITTEN
    }
    own = {VARIABLE: str(folder / "home"), CACHE: str(folder / "cache"), CONFIG: str(folder / "config"), SANDBOX: wish}
    path = os.pathsep.join((str(Path(sys.executable).parent), kept.get("PATH", os.defpath)))
    return {**kept, **own, "PATH": path, "PYTHONUTF8": "1", "NO_PROXY": NEAR, "no_proxy": NEAR}


def _tell_of_walls(cache: Path) -> None:
    """Which walls hold on this machine was just tried: nobody has to try it again."""
    known = user_cache_path("greenroom", appauthor=False) / KNOWN
    if known.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        shutil.copy(known, cache / KNOWN)
