"""Take pictures of the page in its states: 1440, 1024 and 390 pixels wide, light, dark and Chinese.

`python -m tools.screenshots [FOLDER]` runs a team with the scripted model and fills `.go/screenshots`, which git
ignores.
`--readme` takes one look only, and writes the two pictures of the README.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

from playwright.sync_api import Browser, Page, sync_playwright

from greenroom.testing.demo_run import ScriptedTurn
from greenroom.testing.demo_team import REQUEST
from tests.page.playground import Playground, open_playground

ROOT: Final = Path(__file__).parents[1]
SIZES: Final = {"1440": (1440, 900), "1024": (1024, 768), "390": (390, 844)}
Look: TypeAlias = tuple[str, int, int, bool, bool]
LOOKS: Final[tuple[Look, ...]] = (
    *((f"{name}-light", *size, False, False) for name, size in SIZES.items()),
    *((f"{name}-dark", *size, True, False) for name, size in SIZES.items()),
    *((f"{name}-zh", *size, False, True) for name, size in SIZES.items()),
)
BREAKING: Final = (
    ScriptedTurn("", "read_code", {"file": "export.py"}),
    ScriptedTurn("", "rewrite", {"file": "export.py", "content": "def export(rows, out):\n    raise SystemExit\n"}),
    ScriptedTurn("", "finish", {"status": "done", "summary": "It is done.", "files": ["export.py"]}),
)
QUIET_MS: Final = 700
READY: Final = """() => document.querySelector('main h1') && !document.querySelector('.skeleton')
  && document.querySelector('main').innerText.length > 60
  && (!document.querySelector('.timeline') || document.querySelector('.timeline-canvas'))"""


class Camera:
    """One page for each look, all signed in."""

    def __init__(self, browser: Browser, playground: Playground, folder: Path, looks: Sequence[Look]) -> None:
        self._folder, self._base = folder, playground.base_url
        first = browser.new_context()
        first.new_page().goto(playground.link)
        state = first.storage_state()
        first.close()
        self.pages = dict[str, Page]()
        for name, width, height, dark, zh in looks:
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if dark else "light",
                reduced_motion="reduce",
                storage_state=state,
            )
            if zh:
                context.add_init_script("localStorage.setItem('greenroom.language', 'zh')")
            self.pages[name] = context.new_page()

    def shoot(self, name: str, path: str = "") -> None:
        """Take a state of the page in every look; without a path as the pages stand."""
        for look, page in self.pages.items():
            if path:
                page.goto(self._base + path)
            page.wait_for_timeout(QUIET_MS)
            page.wait_for_function(READY)
            page.screenshot(path=self._folder / f"{name}-{look}.png")


def take_all(folder: Path, looks: Sequence[Look]) -> None:
    """Run a team and take its pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    arguments = ["--no-sandbox"] if os.getuid() == 0 else []
    with (
        tempfile.TemporaryDirectory(prefix="greenroom-page-") as name,
        open_playground(Path(name), pace=0.3) as playground,
        sync_playwright() as playwright,
    ):
        playground.run("permissions", "add", "ask", "path", "docs/**")
        playground.serve()
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        camera = Camera(browser, playground, folder, looks)
        camera.shoot("empty-start", "/")
        plan = playground.ask("/plans", request=REQUEST)
        run = playground.ask("/runs", request=REQUEST, plan=plan["text"], confirm_checks=plan["checks_digest"])["id"]
        camera.shoot("running-team", f"/runs/{run}/plan")
        playground.wait_for_inbox(2)
        camera.shoot("waiting-approval", "/inbox")
        camera.shoot("waiting-conflict", f"/runs/{run}/changes?view=conflicts")
        camera.shoot("waiting-plan", f"/runs/{run}/plan")
        playground.wait_for_state(run, "finished")
        camera.shoot("merged-conflict", f"/runs/{run}/changes?view=conflicts")
        camera.shoot("verified-change", f"/runs/{run}/changes?file=export.py")
        for tab in ("activity", "messages", "agents", "costs", "log"):
            camera.shoot(tab, f"/runs/{run}/{tab}")
        camera.shoot("past-version", f"/runs/{run}/plan?at=120")
        playground.provider.script = BREAKING
        broken = playground.ask("/runs", request="make export faster")["id"]
        playground.wait_for_state(broken, "finished", "failed", "stopped", "limit")
        camera.shoot("failed-check", f"/runs/{broken}/changes")
        camera.shoot("runs", "/")
        camera.shoot("costs-place", "/costs")
        playground.end(signal.SIGKILL)
        for page in camera.pages.values():
            page.locator(".band.bad").wait_for()
        camera.shoot("lost-connection")
        browser.close()


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    is_short = "--readme" in sys.argv
    place = Path(words[0]) if words else ROOT / ".go" / "screenshots"
    take_all(place, LOOKS[:1] if is_short else LOOKS)
    if is_short:
        shutil.copy(place / "waiting-plan-1440-light.png", ROOT / "docs" / "page-plan.png")
        shutil.copy(place / "verified-change-1440-light.png", ROOT / "docs" / "page-changes.png")
