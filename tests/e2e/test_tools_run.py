"""`greenroom tools run`: a person calls a tool themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.provider import settings
from tests.e2e.terminal import greenroom


@pytest.fixture(name="project")
def _project(tmp_path: Path) -> Path:
    """A folder with a file."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "hello.py").write_text("print('hello')\n", encoding="utf-8")
    return folder


def test_a_tool_is_called_and_its_step_is_in_the_log(tmp_path: Path, project: Path) -> None:
    here = str(project)
    ended = greenroom(tmp_path, "tools", "run", "execute_script", "script=echo made > made.txt; cat made.txt", cwd=here)
    assert (ended.code, ended.out) == (0, "exit code 0\nmade\n")
    assert (project / "made.txt").exists()
    patch = '{"file": "hello.py", "edits": [{"search": "\'hello\'", "replace": "\'goodbye\'"}]}'
    ended = greenroom(tmp_path, "tools", "run", "patch", "--json", "-", stdin=patch, cwd=here)
    assert (ended.code, "-print('hello')" in ended.out) == (0, True)
    tasks = greenroom(tmp_path, "runs", "--output-format", "json").json["tasks"]
    assert isinstance(tasks, list)
    assert [(one["name"], one["state"]) for one in tasks] == [("patch", "finished"), ("execute_script", "finished")]


def test_what_the_persons_own_rules_deny_is_denied(tmp_path: Path, project: Path) -> None:
    here = str(project)
    assert greenroom(tmp_path, "permissions", "add", "deny", "command", "rm", cwd=here).code == 0
    ended = greenroom(tmp_path, "tools", "run", "execute_script", "script=rm hello.py", cwd=here)
    assert ended.code == 1
    assert "deny command rm" in ended.err
    assert (project / "hello.py").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nosuch",), 2, "There is no tool 'nosuch'"),
        (("read_cod", "file=x"), 2, "Did you mean 'read_code'?"),
        (("read_code", "hello.py"), 2, "is not a parameter of read_code"),
        (("read_code", '{"file": "hello.py"}'), 2, 'with --json: --json \'{"file": "hello.py"}\''),
        (("read_code", "--json", "{"), 2, "--json is not valid JSON"),
        (("read_code", "--json", "[1]"), 2, "--json is not a JSON object"),
        (("read_code",), 1, '"file" is a required property'),
        (("read_code", "file=hello.py", "start_line=first"), 1, "start_line"),
        (("read_code", "file=nothing.py"), 1, "nothing.py"),
        (("ask_user", "question=Who?"), 1, "Denied"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_slip_is_a_sentence(tmp_path: Path, project: Path, words: tuple[str, ...], code: int, said: str) -> None:
    ended = greenroom(tmp_path, "tools", "run", *words, cwd=str(project))
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err


NOISY = '''
import os, sys
from greenroom import tool

print("loaded")

@tool(effect="pure")
def shout(word: str) -> str:
    """Say it loudly."""
    print("printed")
    sys.stdout.flush()
    os.system("echo from a child")
    os.write(1, b"written to the number\\n")
    return word.upper()
'''


@pytest.mark.parametrize("output", ["text", "json", "stream-json"])
def test_what_a_tool_prints_is_not_among_the_answer(tmp_path: Path, project: Path, output: str) -> None:
    own = tmp_path / "config" / "greenroom" / "tools"
    own.mkdir(parents=True)
    (own / "noisy.py").write_text(NOISY, encoding="utf-8")
    words = ("tools", "run", "shout", "word=hello", "--output-format", output)
    ended = greenroom(tmp_path, *words, cwd=str(project))
    assert ended.code == 0
    for said in ("loaded", "printed", "from a child", "written to the number"):
        assert said not in ended.out
        assert said in ended.err
    if output == "text":
        assert ended.out == "HELLO\n"
    else:
        assert ended.lines[-1]["output"] == "HELLO"


@pytest.mark.parametrize("name", ["metadata.google.internal", "Metadata", "instance-data", "[::ffff:a9fe:a9fe]"])
def test_metadata_is_not_reached_whatever_a_person_allows(tmp_path: Path, project: Path, name: str) -> None:
    here = str(project)
    assert greenroom(tmp_path, "permissions", "add", "allow", "host", "*", cwd=here).code == 0
    ended = greenroom(tmp_path, "tools", "run", "web_fetch", f"url=http://{name}/latest/", cwd=here)
    assert ended.code == 1
    assert "No setting opens it." in ended.out + ended.err


def test_with_its_port_open_this_machine_is_still_not_reached(tmp_path: Path, project: Path) -> None:
    settings(tmp_path, "[web]\nports = [8123]\n")
    assert greenroom(tmp_path, "permissions", "add", "allow", "host", "127.0.0.1:8123", cwd=str(project)).code == 0
    ended = greenroom(tmp_path, "tools", "run", "web_fetch", "url=http://127.0.0.1:8123/", cwd=str(project))
    assert (ended.code, "(this machine), which is not reached from here" in ended.out + ended.err) == (1, True)
