"""What scripts say to an organisation and read of it: lines behind --say and in a pipe, JSON, keys, waiting."""

import subprocess
from pathlib import Path

import pytest

from tests.e2e.organised import TEA, Company, Line, new, step, writes
from tests.e2e.provider import KEY, provider, reached
from tests.e2e.terminal import GREENROOM, PATIENCE, Ended, environment, greenroom
from tests.e2e.typing import Typing
from tests.sampling import first

ASKING: dict[tuple[str, str], list[Line]] = {
    ("manager", "planning"): [[step("send_message", "Ask ann.")], []],
    ("manager", "send_message"): [writes("ann", f"Is {KEY} yours?\nSay so.", waiting=True)],
    ("manager", "process_message"): ["Good."],
    ("manager", "reflection"): [[]],
}
"""The manager asks back, and shows a key."""


def talk(home: Path, folder: Path, *words: str, stdin: str | None = None, **more: str) -> Ended:
    return greenroom(home, "talk", *words, stdin=stdin, cwd=str(folder), **more)


def from_shell(home: Path, folder: Path, line: str, **more: str) -> Ended:
    """As a shell does it that turns streams around."""
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {line}', "sh", *GREENROOM, "talk"],
        env=environment(home, **more),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("form", first("text", "json", "stream-json"))
def test_a_key_that_somebody_was_sent_is_shown_nowhere(tmp_path: Path, form: str) -> None:
    home = tmp_path / "home"
    with provider(Company(ASKING)) as server:
        more = reached(server)
        new(home, tmp_path, "--person", "ann", **more)
        told = [
            talk(home, tmp_path, "--say", "Tea.", "--wait", "--output-format", form, **more),
            talk(home, tmp_path, "--inbox", "--output-format", form, **more),
            talk(home, tmp_path, "--output-format", form, stdin="/inbox\n/history manager\n/notices\n", **more),
            talk(home, tmp_path, "--say", f"/to {KEY}: x", "--output-format", form, **more),
        ]
        with Typing(home, "talk", cwd=str(tmp_path), columns="60", **more) as ann:
            ann.until("Is [secret] yours?")
            ann.until("›")
            seen = ann.seen
    assert KEY not in "\n".join((*(f"{one.out}\n{one.err}" for one in told), seen))
    for one in told[:3]:
        assert "Is [secret] yours?" in one.out


@pytest.mark.parametrize("form", ["json", "stream-json"])
def test_whatever_is_shown_to_people_is_told_to_programs(tmp_path: Path, form: str) -> None:
    home = tmp_path / "home"
    (tmp_path / "tea.txt").write_text("sencha\n")
    with provider(Company(TEA)) as server:
        more = reached(server)
        new(home, tmp_path, "--person", "ann", "--person", "ben", **more)
        lines = "/who\n/tasks\n/help\n/tell ben: Tea!\n/history ben\n/notices\n/inbox\n"
        lines += '/tool read_code {"file": "tea.txt"}\n/wat\n'
        ended = talk(home, tmp_path, "--as", "ann", "--output-format", form, stdin=lines, **more)
    found = ended.lines[-1]
    if form == "stream-json":
        kinds = {"agent": "agents", "task": "tasks", "command": "commands", "said": "history", "done": "done"}
        kinds |= {"tool_call": "tool_calls", "refused": "refused"}
        assert not set(kinds.values()) & set(found)
        found = {many: [one for one in ended.lines if one["type"] == kind] for kind, many in kinds.items()}
        found |= {"notices": [], "letters": []}
    shown = {name: found[name] for name in ("notices", "letters")}
    assert shown == {"notices": [], "letters": []}
    agents, tasks, commands = (_all(found, name) for name in ("agents", "tasks", "commands"))
    assert [(one["agent"], one["you"], one["kind"]) for one in agents] == [
        ("ann", True, "human"),
        ("ben", False, "human"),
        ("manager", False, "llm"),
    ]
    assert [(one["task"], one["manager"], one["stages"]) for one in tasks] == [("t1", "manager", [])]
    assert {"command": "answer", "takes": "N TEXT", "about": "answer letter N"}.items() <= commands[0].items()
    (said,) = _all(found, "history")
    assert (said["with"], said["from"], said["message"]) == ("ben", "ann", "Tea!")
    (done,) = _all(found, "done")
    assert (done["what"], done["to"]) == ("sent", "ben")
    (call,) = _all(found, "tool_calls")
    assert (call["tool"], call["state"], call["stage"]) == ("read_code", "finished", None)
    assert "sencha" in str(call["output"])
    (refused,) = _all(found, "refused")
    assert str(refused["error"]).startswith("There is no command /wat.")


def _all(found: dict[str, object], name: str) -> list[dict[str, object]]:
    told = found[name]
    assert isinstance(told, list)
    return told


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (b"x" * 1_100_000, "Line 2 of stdin has more than 1 MB. Split it."),
        (b'"""\nDo not delete this:\n\xff\n/tell ben: No.\n"""', "Line 4 of stdin is no text. Write it in UTF-8."),
    ],
    ids=["long", "no text"],
)
def test_at_a_line_that_cannot_be_read_it_ends_and_those_before_it_are_done(
    tmp_path: Path, bad: bytes, said: str
) -> None:
    home, file = tmp_path / "home", tmp_path / "lines"
    file.write_bytes(b"\n".join((b"/tell ben: One.", bad, b"/tell ben: Two.")))
    with provider(Company({})) as server:
        more = reached(server)
        new(home, tmp_path, "--person", "ann", "--person", "ben", **more)
        ended = from_shell(home, tmp_path, f"--as ann < {file}", **more)
        heard = talk(home, tmp_path, "--as", "ben", "--say", "/history ann", **more).out
    assert (ended.code, said in ended.err) == (2, True), ended.err
    assert [line.partition("ann: ")[2] for line in heard.splitlines()] == ["One."]
