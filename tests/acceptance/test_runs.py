"""What a run leaves: untouched files, commits by step, a baseline, a verdict on the delivered tree, a readable log."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.kit import (
    BAD,
    FAILED,
    JSON,
    KEY,
    PLAN,
    PRICES,
    USAGE,
    VERIFIED,
    Desk,
    fields,
    git,
    replace,
    rows,
    say,
    serve_model,
    snapshot,
    write,
)

FRESH = """import os
import sys

if os.path.exists("left.tmp"):
    sys.exit(3)
open("left.tmp", "w").close()
sys.exit(0 if "good" in open("app.txt").read() else 1)
"""
"""Fails where an earlier run of it was."""


@dataclass(frozen=True)
class Done:
    """A verified run that nobody has applied, what the person had before, and what the run printed."""

    desk: Desk
    run: str
    before: dict[str, str]
    told: dict[str, object]


@pytest.fixture(name="done", scope="module")
def _done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    desk = Desk(tmp_path_factory.mktemp("done"), files={"app.txt": "good\n", "check.py": FRESH})
    desk.put("notes.txt", "mine\n")
    before = snapshot(desk.repo)
    edits = (PLAN, replace("good", "good, red"), write("new.txt", "new\n", 2), say("Done."))
    ended = desk.work(*edits)
    assert ended.code == VERIFIED, ended.err
    return Done(desk, str(ended.json["team"]), before, ended.json)


def test_the_persons_files_stay_as_they_are(done: Done) -> None:
    assert snapshot(done.desk.repo) == done.before


def test_a_verified_run_ends_with_zero_and_says_so(done: Done) -> None:
    told = done.told
    assert (told["exit_code"], told["status"], told["verified"]) == (VERIFIED, "finished", True)
    assert float(str(told["cost"])) > 0
    changes = {str(row["path"]): row["kind"] for row in rows(told["changes"])}
    assert set(changes) == {"app.txt", "new.txt"}
    assert changes["app.txt"] == "changed"


def test_every_edit_is_a_commit_with_trailers(done: Done) -> None:
    refs = git(done.desk.repo, "for-each-ref", "--format=%(refname)", f"refs/greenroom/{done.run}").split()
    tip = str(done.told["tip"])
    assert any(git(done.desk.repo, "rev-parse", ref).strip() == tip for ref in refs)
    run, step = (f"%(trailers:key=Greenroom-{name},valueonly,separator=)" for name in ("Run", "Step"))
    form = f"--format={run}|{step}"
    commits = git(done.desk.repo, "log", form, f"{done.told['base']}..{tip}").split()
    assert len(commits) == 2
    assert {line.partition("|")[0] for line in commits} == {done.run}
    edited = {str(event["step_id"]) for event in done.desk.events(done.run) if is_edit(event)}
    assert {line.partition("|")[2] for line in commits} == edited


def is_edit(event: dict[str, object]) -> bool:
    """Whether a step that edits was queued."""
    return event["type"] == "StepQueued" and fields(event["work"])["executor"] in ("patch", "rewrite")


def test_the_base_commit_is_what_the_person_had(done: Done) -> None:
    base = done.told["base"]
    assert git(done.desk.repo, "show", f"{base}:app.txt") == "good\n"
    assert "notes.txt" in git(done.desk.repo, "ls-tree", "--name-only", str(base)).split(), "also what is in no commit"


def test_the_baseline_is_recorded_before_the_model_is_asked(done: Done) -> None:
    events = done.desk.events(done.run)
    kinds = {event["step_id"]: fields(event["work"])["executor"] for event in events if event["type"] == "StepQueued"}
    ended = [event for event in events if event["type"] == "StepEnded"]
    baseline = next(event for event in ended if kinds[event["step_id"]] == "baseline")
    first_reply = next(event for event in ended if kinds[event["step_id"]] == "converse")
    assert int(str(baseline["version"])) < int(str(first_reply["version"]))
    (check,) = rows(fields(fields(baseline["result"])["report"])["checks"])
    assert (check["check"], check["outcome"], check["exit"]) == ("unit", "passed", 0)


def test_the_verdict_is_about_the_delivered_tree(done: Done) -> None:
    (receipt,) = rows(fields(done.told["verdict"])["receipts"])
    tree = git(done.desk.repo, "rev-parse", f"{done.told['tip']}^{{tree}}").strip()
    assert (receipt["check"], receipt["exit"], receipt["tree"]) == ("unit", 0, tree)


def test_what_checks_leave_behind_is_in_no_commit(done: Done) -> None:
    assert "left.tmp" not in git(done.desk.repo, "ls-tree", "-r", "--name-only", str(done.told["tip"]))
    assert not (done.desk.repo / "left.tmp").exists()


def test_the_diff_makes_the_same_tree(done: Done, tmp_path: Path) -> None:
    patch = done.desk.type("diff", done.run)
    assert patch.code == 0
    git(tmp_path, "clone", "--quiet", str(done.desk.repo), "clone")
    subprocess.run(["git", "apply", "-"], cwd=tmp_path / "clone", input=patch.out.encode(), check=True)
    assert (tmp_path / "clone" / "app.txt").read_text() == "good, red\n"
    assert (tmp_path / "clone" / "new.txt").read_text() == "new\n"


def test_the_log_has_every_version_once(done: Done) -> None:
    ended = done.desk.type("events", done.run, "--output-format", "stream-json")
    first, *events, last = ended.lines
    assert (first["type"], first["schema_version"], last["type"]) == ("init", 1, "result")
    assert [event["version"] for event in events] == list(range(1, len(events) + 1))
    assert first["head"] == last["version"] == len(events)


def test_a_person_sees_the_run_in_show_tasks_and_cost(done: Done) -> None:
    shown, cost = done.desk.show(done.run), done.desk.type("cost", done.run, *JSON).json
    (task,) = rows(shown["tasks"])
    assert (task["state"], task["intention"]) == ("finished", "Paint it.")
    assert fields(shown["spent"])["money"] == round(float(str(cost["cost"])) * 1e6)
    assert cost["cost"] == done.told["cost"]
    listed = rows(done.desk.type("runs", *JSON).json["tasks"])
    assert [row["state"] for row in listed if row["team"] == done.run] == ["finished"]


def test_a_replay_asks_no_model_and_ends_where_the_run_did(done: Done) -> None:
    told = done.desk.type("replay", done.run, *JSON)
    assert (told.code, told.json["version"]) == (0, done.told["version"])
    assert told.json["tokens"] == done.told["tokens"]
    early = done.desk.type("replay", done.run, "--at", "8", *JSON)
    assert early.code == 0
    assert rows(early.json["tasks"])[0]["state"] == "running"


def test_a_fork_begins_where_the_other_was_and_leaves_it_alone(done: Done) -> None:
    version = done.desk.show(done.run)["version"]
    forked = done.desk.type("fork", done.run, "--at", "12", *JSON)
    assert (forked.code, forked.json["origin"]) == (0, done.run)
    assert 1 < int(str(forked.json["at"])) <= 12, "a fork begins at a commit of the log"
    new = done.desk.show(str(forked.json["team"]))
    assert rows(new["tasks"])[0]["state"] == "running"
    assert done.desk.show(done.run)["version"] == version


def test_a_check_that_newly_fails_ends_with_one_and_is_not_applied(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    before = snapshot(desk.repo)
    ended = desk.work(*BAD, words=("--apply",))
    assert (ended.code, ended.json["verified"]) == (FAILED, False)
    assert snapshot(desk.repo) == before
    assert "-good" in desk.type("diff", "last").out, "the work is kept"


def test_a_question_needs_no_check_and_changes_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path, PRICES)
    before = snapshot(desk.repo)
    with serve_model(say("Green.")) as server:
        ended = desk.type("run", "Which colour?", "--question", *JSON, **server.reach)
    assert (ended.code, ended.json["answer"], ended.json["answered"]) == (0, "Green.", True)
    assert snapshot(desk.repo) == before


@pytest.mark.parametrize("words", [("show", "nosuch"), ("run", "x", "--apply", "--branch", "y"), ("run", "--nosuch")])
def test_wrong_usage_ends_with_two(tmp_path: Path, words: tuple[str, ...]) -> None:
    desk = Desk(tmp_path)
    ended = desk.type(*words, OPENAI_API_KEY=KEY)
    assert (ended.code, ended.out) == (USAGE, "")


def test_without_a_model_or_a_provider_the_codes_are_three_and_four(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert desk.type("ask", "Who?").code == 3
    assert desk.type("ask", "Who?", OPENAI_API_KEY=KEY, OPENAI_BASE_URL="http://127.0.0.1:9/v1").code == 4
