"""Planted keys, through the real door: in no prompt, no log, no recording, on no screen and in no command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.e2e.provider import KEY, Beside, provider, reached
from tests.e2e.terminal import Ended, from_nothing, greenroom
from tests.e2e.test_hands import acts, coder_project
from tests.fake_openai import Answer

PLANTED = {
    "AWS_SECRET_ACCESS_KEY": "planted-aws-0123456789",
    "GITHUB_TOKEN": "planted-github-0123456789",
    "ANTHROPIC_API_KEY": "planted-anthropic-0123456789",
    "SSH_AUTH_SOCK": "/run/planted-agent-0123456789",
    "DATABASE_PASSWORD": "planted-password-0123456789",
    "SOMETHING_UNHEARD_OF": "planted-unheard-0123456789",
}


IN_A_FILE = "planted-file-0123456789"
TATTLE = """import os, pathlib
pid = os.getpid()
while pid > 1:
    words = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\\0")
    found = [word for word in words if word.startswith((b"OPENAI_API_KEY=", b"ANTHROPIC_API_KEY="))]
    if found:
        print("FOUND", *(word.decode() for word in found))
        break
    pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
"""
"""Without walls nothing keeps a command from looking at the process that began it."""


@pytest.fixture(name="project")
def _project(tmp_path: Path) -> Path:
    """A folder with an agent, and files that hold keys."""
    folder = coder_project(tmp_path / "project", tmp_path / "home" / "config", tattle=TATTLE)
    (folder / "notes.txt").write_text(f"the key is {KEY}\n", encoding="utf-8")
    (folder / ".env").write_text(f"TOKEN={IN_A_FILE}\n", encoding="utf-8")
    return folder


def script(line: str) -> tuple[str, Mapping[str, object]]:
    """A call that runs it."""
    return "execute_script", {"script": line}


def run(home: Path, project: Path, fake: Beside, *more: str) -> Ended:
    """One run, as somebody with all these keys begins it."""
    words = ("run", "Look around.", "--agent", "coder", "--in-place", *more)
    environment = {**PLANTED, **reached(fake)}  # the kernel shows only what a process was started with
    return from_nothing(home, *words, cwd=str(project), **environment)


def told(fake: Beside) -> str:
    """Everything that the provider was told, apart from whom it is told by."""
    return str([request.body for request in fake.requests])


def kept(home: Path) -> bytes:
    """Every byte below the home: databases, what SQLite writes ahead, blobs."""
    return b"".join(one.read_bytes() for one in sorted(home.rglob("*")) if one.is_file())


def nowhere(secret: str, fake: Beside, home: Path, ended: Ended) -> None:
    """Nobody was told this."""
    assert secret not in told(fake)
    assert secret.encode() not in kept(home)
    assert secret not in f"{ended.out}{ended.err}"


LOOKING = "env; python3 tattle.py"


def test_no_key_reaches_a_command_a_prompt_the_log_a_recording_or_the_screen(tmp_path: Path, project: Path) -> None:
    home = tmp_path / "home"
    assert greenroom(home, "permissions", "add", f"allow line {LOOKING}", cwd=str(project)).code == 0
    calls = acts(script(LOOKING), ("read_code", {"file": "notes.txt"}))
    with provider(calls) as fake:
        recording = ("--record", str(home / "a.jsonl"), "--output-format", "stream-json")
        ended = run(home, project, fake, *recording)
        seen = told(fake)
        assert ended.code == 7, "a command ran in the files themselves: nothing verifies that"
        for secret in (KEY, *PLANTED.values()):
            nowhere(secret, fake, home, ended)
    assert "HOME=" in seen, "or env was never run"
    assert "FOUND ANTHROPIC_API_KEY=[secret]" in seen or "FOUND OPENAI_API_KEY=[secret]" in seen
    assert "the key is [secret]" in seen
    assert (home / "a.jsonl").exists()


def test_who_looks_through_many_files_passes_over_those_that_hold_keys(tmp_path: Path, project: Path) -> None:
    looks = acts(("search_files", {"pattern": "planted|TOKEN"}), ("list_files", {"glob": "*"}))
    with provider([*looks[:-1], Answer(text="Nothing is there.")]) as fake:
        ended = run(tmp_path / "home", project, fake, "--question")
        assert ended.code == 0
        nowhere(IN_A_FILE, fake, tmp_path / "home", ended)


def test_a_call_of_ones_own_that_carries_a_key_is_refused_and_not_kept(tmp_path: Path) -> None:
    given = f'{{"url": "https://example.com/?key={KEY}"}}'
    ended = greenroom(tmp_path, "tools", "run", "web_fetch", "--json", given, OPENAI_API_KEY=KEY)
    assert (ended.code, "carry a key that Greenroom keeps secret" in ended.err) == (1, True)
    assert all(KEY.encode() not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
