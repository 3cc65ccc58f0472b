"""Draw docs/demo.svg: the real `greenroom demo`, line by line, in 20 seconds.

`python tools/terminal.py` runs the demo and writes the picture. Ids are those of that run.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "demo.svg"
SECONDS = 20.0
ROWS = 26
COLUMNS = 110
LINE, CHARACTER, MARGIN = 18, 7.8, 16
COLOURS = (
    (re.compile(r"^\d  "), "#ffffff;font-weight:bold"),
    (re.compile(r"^\s*[✓]|^   │ ✓"), "#7ee787"),
    (re.compile(r"^\s*✗|^   │ ✗"), "#ff7b72"),
    (re.compile(r"^   \$ "), "#79c0ff"),
    (re.compile(r"^   │"), "#8b949e"),
)
PrintedLine = tuple[float, str]


def play_demo() -> Iterator[PrintedLine]:
    """Run the demo; yield each line with the seconds since its start."""
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "greenroom.cli", "demo"]
        config = Path(home, "gitconfig")
        config.write_text("[user]\nname = Ada\nemail = ada@example.org\n", encoding="utf-8")
        own = {"GREENROOM_HOME": home, "GIT_CONFIG_GLOBAL": str(config), "GIT_CONFIG_SYSTEM": "/dev/null"}
        env = {**os.environ, **own, "COLUMNS": str(COLUMNS), "PYTHONUNBUFFERED": "1"}
        began = time.monotonic()
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, env=env
        ) as process:
            for line in process.stdout or ():
                yield time.monotonic() - began, line.rstrip("\n")
        if process.returncode:
            raise SystemExit(f"The demo ended with exit code {process.returncode}.")


def select_story(lines: list[PrintedLine]) -> list[PrintedLine]:
    """Cut the hints after the story, and scale the times to `SECONDS`."""
    end = next(number for number, (_, text) in enumerate(lines) if text.startswith("Look for yourself"))
    kept = [(at, text[:COLUMNS]) for at, text in lines[:end]]
    scale = (SECONDS - 3) / kept[-1][0]
    return [(at * scale, text) for at, text in kept]


def draw_svg(lines: list[PrintedLine]) -> str:
    """The picture: each line appears when it was printed, and the page scrolls with the newest line."""
    wide, high = COLUMNS * CHARACTER + 2 * MARGIN, ROWS * LINE + 2 * MARGIN
    texts = [_draw_line(number, at, text) for number, (at, text) in enumerate(lines)]
    steps = [
        f"{100 * at / SECONDS:.2f}% {{ transform: translateY({-LINE * max(0, number + 1 - ROWS)}px) }}"
        for number, (at, _) in enumerate(lines)
    ]
    last = -LINE * max(0, len(lines) - ROWS)
    style = (
        "text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre; opacity: 0;"
        " animation: show 1ms forwards }\n"
        "@keyframes show { to { opacity: 1 } }\n"
        f"#page {{ animation: scroll {SECONDS}s step-end forwards; transform: translateY({last}px) }}\n"
        f"@keyframes scroll {{ {' '.join(steps)} 100% {{ transform: translateY({last}px) }} }}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high}" role="img" '
        f'aria-label="greenroom demo in a terminal">\n<style>\n{style}\n</style>\n'
        f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/>\n'
        f'<svg x="{MARGIN}" y="{MARGIN}" width="{wide - 2 * MARGIN:.0f}" height="{ROWS * LINE}">\n<g id="page">\n'
        + "\n".join(texts)
        + "\n</g>\n</svg>\n</svg>\n"
    )


def _draw_line(number: int, at: float, text: str) -> str:
    colour = next((style for pattern, style in COLOURS if pattern.search(text)), "#c9d1d9")
    style = f"fill:{colour};animation-delay:{at:.2f}s"
    return f'<text x="0" y="{(number + 1) * LINE - 5}" style="{style}">{escape(text, quote=False)}</text>'


if __name__ == "__main__":
    PAGE.write_text(draw_svg(select_story(list(play_demo()))), encoding="utf-8")
    print(f"{PAGE.name}: {PAGE.stat().st_size:,} bytes")
