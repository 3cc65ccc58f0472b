"""Which Chromium is used, whether it is seen, and what it gets of our environment."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from greenroom.core.ports.browser import BrowserFault

NAMES: Final = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
MAC: Final = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
PASSED: Final = ("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ")
SEEN: Final = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR")
"""What a browser needs beside that to be seen."""

NONE: Final = (
    "There is no Chromium here. Install it (Debian, Ubuntu: `apt-get install chromium`; macOS: `brew install --cask "
    'chromium`), or name one: `program = "/path/to/chromium"` below [browser] in your settings.'
)


def program(named: str = "") -> str:
    """The path of Chromium; `BrowserFault` says how to get one."""
    if named:
        found = shutil.which(str(Path(named).expanduser()))
        if found is None:
            raise BrowserFault(f"{named!r} below [browser] in your settings is no program. Name one, or leave it out.")
        return found
    paths = (*map(shutil.which, NAMES), *(one for one in MAC if Path(one).is_file()))
    first = next(filter(None, paths), None)
    if first is None:
        raise BrowserFault(NONE)
    return first


def headless(wish: bool | None, environ: Mapping[str, str]) -> bool:
    """Whether nobody sees it: as the person wishes, else where there is nothing to be seen on. Who is root becomes
    somebody else, whom the screen's owner has not let in."""
    if wish is not None:
        return wish
    if sys.platform == "darwin":
        return False
    return os.geteuid() == 0 or not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def environment(environ: Mapping[str, str], home: Path, *, seen: bool) -> dict[str, str]:
    """What it gets of our own: names on a list, and no key. It is at home in its profile, and nowhere else."""
    passed = {name: environ[name] for name in (*PASSED, *(SEEN if seen else ())) if name in environ}
    own = {"HOME": str(home), "TMPDIR": str(home), "XDG_CONFIG_HOME": str(home), "XDG_CACHE_HOME": str(home)}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", **passed, **own}
