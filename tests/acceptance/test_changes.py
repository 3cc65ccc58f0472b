"""What becomes of a change: apply, branch, discard, undo, rewind; conflicts, two runs at once, and kills."""

import signal
from pathlib import Path

import pytest

from tests.acceptance.kit import (
    ALONE,
    FINISH,
    GOOD,
    JSON,
    PLAN,
    PRICES,
    USAGE,
    VERIFIED,
    WAITING,
    Desk,
    Turns,
    call_together,
    fields,
    git,
    replace,
    rows,
    say,
    serve_model,
    snapshot,
    wait_until,
    write,
)

EDITS = (PLAN, replace("good", "good, red"), write("new.txt", "new\n", 2), FINISH)
"""Three turns with a call each, then the end."""


@pytest.fixture(name="desk")
def _desk(tmp_path: Path) -> Desk:
    """A person whose run is done and not applied, with a file of theirs that is in no commit."""
    desk = Desk(tmp_path)
    desk.put("notes.txt", "mine\n")
    ended = desk.work(*GOOD)
    assert ended.code == VERIFIED, ended.err
    return desk


def test_apply_makes_one_commit_that_blame_traces_and_undo_takes_back(desk: Desk) -> None:
    before = snapshot(desk.repo)
    applied = desk.type("apply", "last", *JSON)
    assert (applied.code, applied.json["status"], applied.json["paths"]) == (0, "applied", ["app.txt"])
    assert git(desk.repo, "log", "--format=%an").split() == ["Pia", "Pia"]
    assert git(desk.repo, "rev-parse", "HEAD").strip() == applied.json["commit"]
    assert (desk.read(), desk.read("notes.txt")) == ("good, red\n", "mine\n")
    assert git(desk.repo, "status", "--porcelain") == "?? notes.txt\n"
    blamed = desk.type("blame", "app.txt:1", *JSON).json
    edit = next(
        event
        for event in desk.events()
        if event["type"] == "StepQueued" and fields(event["work"])["executor"] == "patch"
    )
    assert (blamed["run"], blamed["step"]) == (applied.json["team"], edit["step_id"])
    again = desk.type("apply", "last", *JSON)
    assert (again.code, len(git(desk.repo, "log", "--format=%h").split())) == (0, 2)
    undone = desk.type("undo", "last", *JSON)
    assert (undone.code, undone.json["status"]) == (0, "undone")
    assert snapshot(desk.repo) == before


def test_undo_with_revert_keeps_what_came_later_and_plain_undo_never_loses_an_edit(desk: Desk) -> None:
    assert desk.type("apply", "last").code == 0
    desk.put("app.txt", "good, red, and mine\n")
    edited = snapshot(desk.repo)
    assert desk.type("undo", "last").code != 0
    assert snapshot(desk.repo) == edited
    git(desk.repo, "checkout", "--", "app.txt")
    desk.put("later.txt", "later\n")
    git(desk.repo, "add", "later.txt")
    git(desk.repo, "commit", "--quiet", "--message=later")
    undone = desk.type("undo", "last", "--revert", *JSON)
    assert undone.code == 0
    assert (desk.read(), desk.read("later.txt"), desk.read("notes.txt")) == ("good\n", "later\n", "mine\n")
    assert len(git(desk.repo, "log", "--format=%h").split()) == 4


def test_a_branch_has_the_change_and_the_persons_files_do_not(desk: Desk) -> None:
    before = {**snapshot(desk.repo), "branch": ""}
    assert desk.type("branch", "last", "red").code == 0
    assert git(desk.repo, "show", "red:app.txt") == "good, red\n"
    assert git(desk.repo, "log", "--format=%an", "main..red").split() == ["Pia"]
    assert {**snapshot(desk.repo), "branch": ""} == before
    with serve_model(Turns(*GOOD)) as server:
        taken = desk.type("run", "Paint it.", *ALONE, "--branch", "red", **server.reach)
    assert (taken.code != 0, server.asked) == (True, 0)
    assert desk.type("branch", "last", "red").code != 0


def test_a_conflict_is_refused_and_nothing_is_changed(desk: Desk) -> None:
    desk.put("app.txt", "good as gold\n")
    git(desk.repo, "commit", "--quiet", "--all", "--message=mine")
    before = snapshot(desk.repo)
    refused = desk.type("apply", "last", *JSON)
    assert refused.code not in (0, -1)
    assert "app.txt" in refused.out + refused.err
    assert snapshot(desk.repo) == before
    assert not (desk.repo / ".git" / "MERGE_HEAD").exists()
    assert desk.type("branch", "last", "red").code == 0, "the work is still there"


def test_uncommitted_edits_of_other_files_stay_uncommitted(desk: Desk) -> None:
    desk.put("check.py", desk.read("check.py") + "# mine\n")
    assert desk.type("apply", "last").code == 0
    assert git(desk.repo, "diff", "--name-only").split() == ["check.py"]
    assert git(desk.repo, "show", "--name-only", "--format=", "HEAD").split() == ["app.txt"]


def test_work_is_never_dropped_unasked(desk: Desk) -> None:
    (space,) = rows(desk.type("workspaces", "list", *JSON).json["workspaces"])
    tip = git(desk.repo, "rev-parse", f"refs/greenroom/{space['run']}/main").strip()
    assert space["unapplied"]
    refused = desk.type("discard", "last", *JSON)
    assert refused.code == USAGE
    assert desk.type("workspaces", "clean").code == 0
    assert Path(str(space["folder"]), "app.txt").read_text() == "good, red\n"
    assert desk.type("discard", "last", "--yes").code == 0
    assert not Path(str(space["folder"])).exists()
    assert git(desk.repo, "show", f"{tip}:app.txt") == "good, red\n", "its commits stay"


def test_rewind_goes_on_from_a_step_as_a_new_run(desk: Desk) -> None:
    before = snapshot(desk.repo)
    old = str(rows(desk.type("runs", *JSON).json["tasks"])[0]["team"])
    patch = desk.type("diff", old).out
    steps = rows(desk.type("rewind", old, *JSON).json["steps"])
    edit = next(step for step in steps if step["commit"])
    with serve_model([write("more.txt", "more\n", 7), say("More."), say("More.")]) as server:
        begun = desk.type("rewind", old, "--to", str(edit["step"]), "And more.", *JSON, **server.reach)
        ended = desk.answer_all(begun, **server.reach)
    assert ended.code == VERIFIED, ended.err
    assert "And more." in server.heard
    new = str(ended.json["team"])
    assert new != old
    changed = desk.type("diff", new).out
    assert ("+good, red" in changed, "more.txt" in changed) == (True, True)
    assert (desk.type("diff", old).out, snapshot(desk.repo)) == (patch, before)


def test_a_verified_run_is_applied_or_branched_at_once_where_that_was_asked_for(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    ended = desk.work(*GOOD, words=("--branch", "red"))
    assert (ended.code, desk.read()) == (VERIFIED, "good\n"), ended.err
    assert git(desk.repo, "show", "red:app.txt") == "good, red\n"
    ended = desk.work(*GOOD, words=("--apply",))
    taken = fields(ended.json["taken"])
    assert (ended.code, taken["status"], taken["paths"]) == (VERIFIED, "applied", ["app.txt"])
    assert desk.read() == "good, red\n"
    assert git(desk.repo, "rev-parse", "HEAD").strip() == taken["commit"]


def test_two_runs_at_once_do_not_see_each_other(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    models = [Turns(PLAN, write(f"{name}.txt", f"{name}\n"), say("Done."), hold=1) for name in ("one", "two")]
    with serve_model(models[0]) as first, serve_model(models[1]) as second:
        processes = [desk.start("run", "Add it.", "--yes", *JSON, **server.reach) for server in (first, second)]
        wait_until(lambda: first.asked > 1 and second.asked > 1)
        for model in models:
            model.release()
        ended = [
            desk.answer_all(process.end(), **server.reach)
            for process, server in zip(processes, (first, second), strict=True)
        ]
    assert [one.code for one in ended] == [VERIFIED] * 2
    assert [[row["path"] for row in rows(one.json["changes"])] for one in ended] == [["one.txt"], ["two.txt"]]
    for one in ended:
        assert desk.type("apply", str(one.json["team"])).code == 0
    assert (desk.read("one.txt"), desk.read("two.txt")) == ("one\n", "two\n")


@pytest.mark.parametrize(("number", "turn"), [(signal.SIGKILL, 2), (signal.SIGKILL, 3), (signal.SIGINT, 3)])
def test_a_run_that_was_cut_off_resumes_to_the_same_tree_and_does_no_step_twice(
    tmp_path: Path, number: signal.Signals, turn: int
) -> None:
    desk, model = Desk(tmp_path), Turns(*EDITS, hold=turn)
    desk.put("notes.txt", "mine\n")
    before = snapshot(desk.repo)
    with serve_model(model) as server:
        process = desk.start("run", "Paint it.", "--yes", *JSON, **server.reach)
        wait_until(lambda: server.asked > turn)
        process.send(number)
        is_soft = number == signal.SIGINT
        if is_soft:  # the call in flight ends first
            model.release()
        code = process.end().code
        assert code == (128 + signal.SIGINT if is_soft else -signal.SIGKILL)
        model.release()
        asked = server.asked
        ended = desk.answer_all(desk.type("resume", "last", *JSON, **server.reach), **server.reach)
        assert server.asked - asked == len(EDITS) - turn - is_soft, "a reply that was paid for is not asked for again"
    assert ended.code == VERIFIED, ended.err
    assert snapshot(desk.repo) == before
    tip = str(ended.json["tip"])
    assert git(desk.repo, "show", f"{tip}:app.txt") == "good, red\n"
    form = "--format=%(trailers:key=Greenroom-Step,valueonly,separator=)"
    steps = git(desk.repo, "log", form, f"{ended.json['base']}..{tip}").split()
    assert (len(steps), len(set(steps))) == (2, 2)
    ends = [event["step_id"] for event in desk.events() if event["type"] == "StepEnded"]
    assert len(ends) == len(set(ends))


def test_every_tool_call_gets_exactly_one_result(tmp_path: Path) -> None:
    desk = Desk(tmp_path, PRICES)
    both = call_together(("read_code", {"file": "app.txt"}), ("nosuch", {}), ("read_code", {"file": "gone.txt"}))
    model = Turns(both, say("It is good."), hold=1)
    with serve_model(model) as server:
        process = desk.start("run", "Look.", "--question", *JSON, **server.reach)
        wait_until(lambda: server.asked > 1)
        process.send(signal.SIGKILL)
        process.end()
        model.release()
        ended = desk.type("resume", "last", *JSON, **server.reach)
        messages = rows(server.requests[-1].body["messages"])
    assert ended.code == 0, ended.err
    results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert sorted(map(str, results)) == ["m0", "m1", "m2"]


def test_a_plan_waits_for_a_person_over_a_restart(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serve_model(Turns(*GOOD)) as server:
        parked = desk.type("run", "Paint it.", *JSON, **server.reach)
        assert (parked.code, parked.json["status"]) == (WAITING, "waiting")
        (waits,) = rows(desk.type("approvals", "list", *JSON).json["approvals"])
        assert waits["team"] == parked.json["team"]
        assert desk.type("apply", "last").code == USAGE
        assert desk.type("resume", "last", *JSON, **server.reach).code == WAITING
        assert server.asked == 1
        assert desk.type("answer", "last", "yes", *JSON).json["status"] == "approved"
        ended = desk.answer_all(desk.type("resume", "last", *JSON, **server.reach), **server.reach)
    assert ended.code == VERIFIED, ended.err


def test_a_plan_that_is_refused_ends_the_run_without_another_request(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    before = snapshot(desk.repo)
    with serve_model(Turns(*GOOD)) as server:
        assert desk.type("run", "Paint it.", **server.reach).code == WAITING
        assert desk.type("answer", "last", "no").code == 0
        ended = desk.type("resume", "last", **server.reach)
    assert (ended.code, server.asked) == (1, 1)
    assert snapshot(desk.repo) == before
