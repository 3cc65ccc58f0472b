"""The page that is committed, and that a bare clone and a wheel serve, is one whole build."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Final

PAGE: Final = Path(str(files("greenroom.http") / "page"))
NAME: Final = re.compile(r"assets/[\w.-]+\.(?:js|css)|(?<=[\"'`]\./)[\w.-]+\.(?:js|css)(?=[\"'`])")
CONFLICT: Final = re.compile(r"^(?:<{7} |={7}$|>{7} )", re.MULTILINE)


def read_names(path: Path) -> set[str]:
    """Return the assets that a file of the page names."""
    return {name.removeprefix("assets/") for name in NAME.findall(path.read_text("utf-8"))}


def test_every_file_that_the_page_names_is_there_and_no_other() -> None:
    assets = {path.name: path for path in (PAGE / "assets").iterdir() if path.suffix in {".js", ".css"}}
    named = {name for path in (PAGE / "index.html", *assets.values()) for name in read_names(path)}
    assert named == set(assets)


def test_no_file_of_the_page_has_marks_of_a_merge() -> None:
    marked = [
        path.name for path in (PAGE / "index.html", *PAGE.glob("assets/*.css")) if CONFLICT.search(path.read_text())
    ]
    assert not marked
