"""Writes docs/api.md: every public name with its signature and its docstring. The tests compare."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import greenroom

PAGE = Path(__file__).resolve().parents[1] / "docs" / "api.md"
HEAD = """# Public names

`from greenroom import …`. Made from the code by `python tools/api.py`; the tests compare.
"""
ROOMS = {
    "app.library": "Agents, tools, runs",
    "app": "Teams and models",
    "abilities": "Skills",
    "core.rules": "What can be asked for",
    "core.state": "What is",
    "core.ports": "What can be plugged in",
    "core.base": "Amounts and errors",
}
"""Sections by room, the first that fits."""


def text() -> str:
    """The whole page."""
    parts = [HEAD]
    left: dict[str, str] = dict(vars(greenroom)["_HOME"])
    for room, title in ROOMS.items():
        mine = sorted(name for name, place in left.items() if place.startswith(room))
        parts += [f"\n## {title}\n", *(_entry(name) for name in mine)]
        left = {name: place for name, place in left.items() if name not in mine}
    if left:
        raise SystemExit(f"These have no section: {', '.join(left)}")
    return "\n".join(parts)


def _entry(name: str) -> str:
    one = getattr(greenroom, name)
    told = inspect.getdoc(one) or ""
    if not (inspect.isclass(one) or inspect.isfunction(one)):
        return f"### {name}\n\n`{_plain(str(one))}`\n"
    methods = [_method(method, value) for method, value in _methods(one)] if inspect.isclass(one) else []
    signature = f"```text\n{name}{_signature(one)}\n```\n"
    return "\n".join([f"### {name}\n", signature, told, "", *methods, *([""] if methods else [])])


def _methods(kind: type) -> list[tuple[str, object]]:
    """What is called on it: public, of the class itself or of its own rooms."""
    found: dict[str, object] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("greenroom"):
            found |= {name: value for name, value in vars(base).items() if not name.startswith("_")}
    return [
        (name, value) for name, value in found.items() if inspect.isfunction(value) or isinstance(value, classmethod)
    ]


def _method(name: str, value: object) -> str:
    function = value.__func__ if isinstance(value, classmethod) else value
    told = (inspect.getdoc(function) or "").partition("\n")[0]
    return f"- `{name}{_signature(function)}` {told}"


def _signature(one: object) -> str:
    try:
        told = str(inspect.signature(cast("Callable[..., object]", one)))
    except (TypeError, ValueError):
        return ""
    return _plain(told)


def _plain(told: str) -> str:
    """Without what only Python wants to know."""
    short = re.sub(r"0x[0-9a-f]+|greenroom\.[\w.]+\.|typing\.|collections\.abc\.|~", "", told)
    return short.replace("(self, ", "(").replace("(self)", "()").replace("'", "").removesuffix(" -> None")


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")
