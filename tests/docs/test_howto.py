"""The commands and programs of the how-tos and of the README run, and print what the pages show."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from greenroom.cli.app import COMMANDS
from tests.docs.provider import provider
from tests.e2e.terminal import PATIENCE, environment, greenroom

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    ROOT / "README.md",
    ROOT / "README.zh.md",
    ROOT / "docs" / "quickstart.md",
    *sorted((ROOT / "docs" / "howto").glob("*.md")),
)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXITS = re.compile(r"#.*\bexits (\d+)")
EXAMPLE_ID = "k3fx9a2m"
KEY = "sk-of-the-how-to"
NOT_HERE = ("./go ", "uv tool install .")
"""Commands for a checkout and for a machine: the first are what runs these tests, the others change the machine."""


@dataclass
class Typed:
    """A command as a page shows it, with what is piped into it and the lines that the page says it prints."""

    words: list[str]
    code: int
    stdin: str | None = None
    shown: list[str] = field(default_factory=list)


def blocks(page: Path, kind: str) -> list[str]:
    return [body for found, body in FENCE.findall(page.read_text("utf-8")) if found == kind]


def typed(page: Path) -> list[Typed]:
    """The `greenroom` commands of a page, in order."""
    return [command for body in blocks(page, "console") for command in commands_of(body)]


def commands_of(body: str) -> Iterator[Typed]:
    """Each command of a block with the lines below it; `…` stands for lines that are left out."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        line, *shown = part.splitlines()
        command = read(line)
        if command is not None:
            command.shown = [one for one in shown if one.strip() not in ("", "…")]
            yield command


def read(line: str) -> Typed | None:
    if line.startswith(NOT_HERE):
        return None
    code = EXITS.search(line)
    before, pipe, last = line.rpartition(" | ")
    words = shlex.split(last, comments=True)
    assert words[0] == "greenroom", f"{line!r} cannot be tried here: name it in NOT_HERE, or leave it out"
    return Typed(words[1:], int(code[1]) if code else 0, piped(before) if pipe else None)


def piped(command: str) -> str:
    """What a command writes into a pipe; only `printf TEXT` is known."""
    name, text = shlex.split(command)
    assert name == "printf", f"{command!r} cannot be tried here: use printf"
    return text.replace("\\n", "\n")


def plain(text: str, teams: set[str]) -> str:
    """The text without what differs from run to run."""
    for team in teams:
        text = text.replace(team, "TEAM")
    for pattern, word in (
        (r"\d\d:\d\d:\d\d", "TIME"),
        (r"\d+\.\ds of work", "LONG of work"),
        (r"(?i)process,? \d+", "process N"),
        (r"on \S+ takes over", "on HERE takes over"),
        (r"version \d+", "version N"),
        (r'"head":\d+', '"head":N'),
        (r'"home":"[^"]*"', '"home":"HOME"'),
        (r"[ \t]+", " "),
    ):
        text = re.sub(pattern, word, text)
    return text


@pytest.fixture(scope="module", autouse=True)
def _unmeasured() -> Iterator[None]:
    """Coverage nearly doubles what a command takes, and each of them is measured somewhere else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
        yield


@pytest.fixture(scope="module", name="provider")
def a_provider() -> Iterator[str]:
    """The address of a provider that plays its part."""
    with provider() as address:
        yield address


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_run_and_print_what_it_shows(page: Path, tmp_path: Path, provider: str) -> None:
    commands = typed(page)
    assert commands
    for command in commands:
        ended = greenroom(
            tmp_path,
            *command.words,
            stdin=command.stdin,
            cwd=str(tmp_path),
            GREENROOM_DEMO_PACE="0",
            OPENAI_API_KEY=KEY,
            OPENAI_BASE_URL=provider,
        )
        assert ended.code == command.code, f"greenroom {' '.join(command.words)}: {ended.err}"
        teams = {folder.name for folder in (tmp_path / "demo").iterdir()} if (tmp_path / "demo").exists() else set()
        teams |= {word for word in ended.out.split() if command.words[0] == "fork"}
        printed = [line.strip() for line in plain(ended.out + ended.err, teams).splitlines()]
        for line in command.shown:
            assert plain(line, {EXAMPLE_ID}).strip() in printed, f"greenroom {' '.join(command.words)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_a_page_mentions_exists(page: Path) -> None:
    mentioned = set(re.findall(r"^greenroom (\w+)", "\n".join(blocks(page, "sh")), re.MULTILINE))
    assert mentioned <= {entry.name.split()[0] for entry in COMMANDS}


RUNNER = """
import json, os, sys, traceback
import greenroom
loaded = [getattr(greenroom, name) for name in greenroom.__all__]
for number, program in enumerate(json.load(sys.stdin)):
    if os.fork() == 0:
        try:
            exec(compile(program, f"program {number}", "exec"), {"__name__": "__main__"})
            sys.stdout.flush()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.wait()[1]:
        sys.exit(1)
    print(flush=True)
    print("#", flush=True)
"""
"""Runs each program in a process of its own, forked from one that has loaded the library."""


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_the_programs_of_a_page_run(page: Path, tmp_path: Path, provider: str) -> None:
    programs = blocks(page, "python")
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        env=environment(tmp_path, OPENAI_API_KEY=KEY, OPENAI_BASE_URL=provider),
        cwd=tmp_path,
        input=json.dumps(programs),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for program, printed in zip(programs, done.stdout.split("\n#\n"), strict=False):
        found = re.findall(r"print\(.*#\s(.+)$", program, re.MULTILINE)
        promised = [one for one in found if not one.startswith("it ")]
        assert printed.split() == " ".join(promised).split()


def test_the_example_in_the_readme_is_short() -> None:
    (program,) = blocks(ROOT / "README.md", "python")
    assert len([line for line in program.splitlines() if line.strip()]) <= 15


def count_words(page: Path) -> int:
    return len(page.read_text("utf-8").split())


def test_pages_stay_short() -> None:
    docs = ROOT / "docs"
    made = {docs / "requirements.md", docs / "sandbox-results.md", *(docs / "reference").iterdir()}
    pages = {page: count_words(page) for page in docs.rglob("*.md") if page not in made}
    assert sum(pages.values()) <= 32_000
    assert {page.name: words for page, words in pages.items() if page.parent.name == "howto" and words > 900} == {}
    assert {page.name: words for page, words in pages.items() if page.name[0] == "0" and words > 250} == {}
    lines = {name: len((ROOT / name).read_text("utf-8").splitlines()) for name in ("README.md", "CHANGELOG.md")}
    assert lines["README.md"] <= 150
    assert lines["CHANGELOG.md"] <= 75


TOP = ("README.md", "README.zh.md", "CONTRIBUTING.md", "AGENTS.md", "SECURITY.md", "CHANGELOG.md", "examples/README.md")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
FILE = re.compile(r"`([\w./-]+\.(?:py|toml|md))`")
HOMES = (".", "src/greenroom", "src/greenroom/core", "src/greenroom/core/rules")


@pytest.mark.parametrize("name", TOP)
def test_links_and_files_of_a_page_at_the_top_exist(name: str) -> None:
    page = ROOT / name
    text = page.read_text("utf-8")
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []
    files = [file for file in FILE.findall(text) if not re.search(r"NAME|NOUN", file)]
    if name in ("CONTRIBUTING.md", "AGENTS.md"):
        assert [file for file in files if not any((ROOT / home / file).exists() for home in HOMES)] == []
