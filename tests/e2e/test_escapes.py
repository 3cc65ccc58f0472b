"""What a terminal obeys and nobody sees, in everything that strangers say: none of it reaches the person's terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.e2e.provider import provider, reached
from tests.e2e.terminal import greenroom
from tests.e2e.test_hands import acts, coder_project
from tests.e2e.typing import CTRL_D, ENTER, Typing
from tests.fake_openai import Answer

ESCAPES: Mapping[str, str] = {
    "a colour that nobody here uses": "\x1b[38;2;7;7;7m",
    "up, and over what stands there": "\x1b[7A\x1b[2K",
    "another screen": "\x1b[?1047h",
    "what the keyboard says": "\x1b[>7u",
    "a title": "\x1b]0;taken over\x07",
    "a link": "\x1b]8;;http://evil.example/\x1b\\here\x1b]8;;\x1b\\",
    "the clipboard": "\x1b]52;c;cm0gLXJmIC8=\x07",
    "a device's own language": "\x1bP1;1|q\x1b\\",
    "colours in one sign": "\x9b7;7m",
    "a title in one sign": "\x9d0;taken over\x9c",
    "another alphabet": "\x1b(0",
    "text turned round": "\u202egnp.exe\u202c",
    "text set apart": "\u2066x\u2069",
    "nothing": "\x00",
    "one back": "\b\b\b",
    "a bell": "\x07",
    "words in invisible letters": "\U000e0041\U000e0042",
    "another line": "a\u2028b",
    "an end that does not come": "\x1b]0;never ended",
}
ALL = " ".join(f"[{escape}]" for escape in ESCAPES.values())
OVERWRITTEN = "rm -rf /\rls -la  "
LONG = "x" * 100_000

OBEYED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
"""What may be in nothing that is read; a carriage return ends lines on a terminal."""

OWN = re.compile(r"\x1b\[[0-9;?]{0,12}[a-zA-Z]|\x1b[=>]|\x1b\][0-9;]*\x07|[\x07\x08]")
"""What our own prompt tells a terminal."""


@pytest.fixture(name="project")
def _project(tmp_path: Path) -> Path:
    """A folder with an agent, a program that prints all of them, and files that are called like some of them."""
    shout = f"print({ALL!r}); print({OVERWRITTEN!r}); print({LONG!r})\n"
    folder = coder_project(tmp_path / "project", tmp_path / "config", shout=shout)
    for number, escape in enumerate(ESCAPES.values()):
        if not set("/\0") & set(escape):
            (folder / f"file {number} {escape}.txt").write_text("x\n", encoding="utf-8")
    return folder


def steers(text: str) -> str:
    """What of this a terminal would obey, and what stands around it; nothing when there is nothing."""
    found = OBEYED.search(text)
    return repr(text[max(0, found.start() - 80) : found.end() + 80]) if found is not None else ""


def test_nothing_that_tools_or_models_say_is_obeyed_by_the_terminal(tmp_path: Path, project: Path) -> None:
    calls = acts(
        ("execute_script", {"script": "python3 shout.py"}),
        ("list_files", {"glob": "*"}),
        ("read_code", {"file": f"file {ESCAPES['a link']}"}),
        ("execute_script", {"script": f"echo '{ALL}' '{OVERWRITTEN}'"}),
        ("ask_user", {"question": f"Which {ALL} colour?"}),
    )
    with (
        provider([*calls[:-1], Answer(text=f"Done {ALL}.")]) as fake,
        Typing(tmp_path, "chat", "--agent", "coder", cwd=str(project), **reached(fake)) as chat,
    ):
        chat.says("Look.")
        for wish in ("run a command", "use read_code", "run a command"):
            chat.until(f"wants to {wish}")
            chat.press(f"y{ENTER}")
        chat.until("colour?")
        chat.press(f"blue{ENTER}")
        chat.until("Done")
        chat.until("›")
        chat.press(CTRL_D)
        assert chat.ends() == 0
        shown = chat.raw.decode(errors="replace")
    assert [name for name, escape in ESCAPES.items() if len(escape) > 3 and escape in shown] == []
    assert steers(OWN.sub("", shown)) == ""
    assert OVERWRITTEN not in shown


LOOKING = (
    ("show", "last"),
    ("events", "last"),
    ("approvals", "list"),
    ("runs",),
    ("show", "last", "--output-format", "json"),
)


def test_nothing_that_is_looked_at_later_is_obeyed_either(tmp_path: Path, project: Path) -> None:
    calls = acts(("list_files", {"glob": "*"}), ("execute_script", {"script": f"echo '{ALL}' '{OVERWRITTEN}'"}))
    with provider(calls) as fake:
        words = ("run", f"Look at {ALL.replace(chr(0), '')}.", "--agent", "coder")
        parked = greenroom(tmp_path, *words, cwd=str(project), **reached(fake))
    assert parked.code == 6
    for look in (parked, *(greenroom(tmp_path, *words) for words in LOOKING)):
        assert look.out or look.err
        assert steers(look.out + look.err) == ""
        assert "\r" not in look.out + look.err
