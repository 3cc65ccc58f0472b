"""Start, control, answer and apply a run over HTTP, as the page does."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from greenroom.app.toolset import pipeline
from greenroom.app.toolset.pipeline import CallPreview, preview_call
from greenroom.core.base.ids import TeamId
from greenroom.http.routes import work
from greenroom.http.state_reader import StateReader
from greenroom.testing.scripted import Cue
from tests.app.teams.play import Gate, GatedModel, git, make_repository
from tests.http.conftest import open_site
from tests.http.desk import call, coder, enter_shop, open_desk, write_test


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_shop(tmp_path, monkeypatch)


async def test_a_run_is_started_verified_applied_and_undone(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_desk(coder(write_test()), monkeypatch) as desk:
        run = await desk.start(request="add a test of the empty cart", confirm_checks=True)
        item = await desk.ask(run)
        assert (item["kind"], item["tool"], item["agent"]) == ("permission", "deliver", "coder")
        await desk.answer(item, scope="run")
        await desk.rest(run)
        change = await desk.get(f"/runs/{run}/change")
        assert (change["state"], change["verdict"]) == ("ready", "verified")
        (row,) = (await desk.get("/runs"))["items"]
        with monkeypatch.context() as patch:
            patch.setattr(StateReader, "read_steps", None)  # what is known is not read again
            assert (await desk.get("/runs"))["items"] == [row]
            assert (await desk.get(f"/runs/{run}"))["verdict"] == row["verdict"] == "verified"
        for at in (1, 2):
            then = await desk.get(f"/runs/{run}", at=at)
            assert (then["verdict"], {row["why"] for row in then["actions"]}) == (None, {"You see a past version."})
            assert not any(row["is_allowed"] for row in then["actions"])
            before = await desk.get(f"/runs/{run}/change", at=at)
            assert (before["at"], before["verdict"], before["files"]) == (at, None, []), before
        (receipt,) = change["receipts"]
        assert (receipt["check"], receipt["before"], receipt["outcome"], receipt["passed"]) == (
            "unittest",
            "passed",
            "passed",
            2,
        )
        log = await desk.get(f"/runs/{run}/change/log", check=receipt["log"])
        assert "test_empty" in log["text"]
        assert not (shop / "tests/test_empty.py").exists()
        (file,) = change["files"]
        assert (file["path"], file["kind"], file["is_test"], file["agents"]) == (
            "tests/test_empty.py",
            "added",
            True,
            ["coder"],
        )
        diff = await desk.get(f"/runs/{run}/change/file", path=file["path"])
        assert "+class Empty(unittest.TestCase):" in diff["text"]
        blame = await desk.get(f"/runs/{run}/change/blame", path=file["path"])
        assert {line["agent"] for line in blame["items"]} == {"coder"}
        assert (await desk.post(f"/runs/{run}/apply"))["commit"]
        head = (await desk.get(f"/runs/{run}/change"))["at"]
        applied = {at: await desk.get(f"/runs/{run}/change", at=at) for at in (head - 1, head)}
        assert {at: (row["state"], bool(row["commit"])) for at, row in applied.items()} == {
            head - 1: ("open", False),
            head: ("applied", True),
        }
        assert (shop / "tests/test_empty.py").exists()
        refused = await desk.post(f"/runs/{run}/apply", 409)
        assert refused["message"] == "The change is applied."
        await desk.post(f"/runs/{run}/undo")
        assert not (shop / "tests/test_empty.py").exists()


async def test_of_two_answers_the_first_counts_and_the_other_is_told(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_desk(coder(write_test()), monkeypatch) as desk:
        run = await desk.start(request="add a test of the empty cart")
        item = await desk.ask(run)
        path = f"/api/runs/{run}/inbox/{quote(item['id'], safe='')}"
        bodies = ({"decision": "approved", "scope": "run"}, {"decision": "denied", "text": "not now"})
        answers = await asyncio.gather(*(desk.client.post(path, json=body) for body in bodies))
        assert sorted(found.status_code for found in answers) == [200, 409]
        late = next(found.json() for found in answers if found.status_code == 409)
        assert late["code"] == "answered_elsewhere"
        won = "yes" if answers[0].status_code == 200 else "no: not now"
        assert late["message"] == f"A person on the page has already answered: {won}."
        await desk.rest(run)
        assert (await desk.answer(item, 409))["code"] == "answered_elsewhere"


async def test_a_question_of_an_agent_is_answered_once(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_desk(coder(call("ask_user", question="Which name?"), write_test()), monkeypatch) as desk:
        run = await desk.start(request="add a test", allow_unverified=True)
        item = await desk.ask(run)
        assert (item["kind"], item["question"]) == ("question", "Which name?")
        blank = await desk.answer(item, 409)
        assert (blank["message"], blank["hint"]) == ("coder needs an answer in words: Which name?", "")
        await desk.answer(item, text='{"name": "Empty"}')
        late = await desk.answer(item, 409, text="Full")
        assert late["message"] == 'A person on the page has already answered: {"name": "Empty"}.'
        assert await desk.allow(run) is None
        assert '{"name": "Empty"}' in str(desk.model.requests[1].messages)


async def test_an_edit_that_needs_a_permission_shows_its_diff_and_its_rule(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = call("rewrite", file="AGENTS.md", content="# Notes\n")
    async with open_desk(coder(guide), monkeypatch) as desk:
        (shop / ".greenroom").mkdir()
        (shop / ".greenroom" / "permissions").write_text("ask path AGENTS.md write\n")
        run = await desk.start(request="write a guide", confirm_checks=True)
        item = await desk.ask(run)
        assert (item["kind"], item["tool"], item["files"]) == ("permission", "rewrite", ["AGENTS.md"])
        assert json.loads(item["call"]) == {"file": "AGENTS.md", "content": "# Notes\n"}
        assert item["diff"] == "--- /dev/null\n+++ b/AGENTS.md\n@@ -0,0 +1 @@\n+# Notes\n"
        await desk.rest(run)
        (item,) = await desk.list_open(run)
        looks = 0

        async def look(*arguments: Any) -> CallPreview:
            nonlocal looks
            looks += 1
            return await preview_call(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(work, "preview_call", look)
            assert await desk.list_open(run) == [item]
            desk.context.previews.clear()
            patch.setattr(pipeline, "MAX_PREVIEW_BYTES", 7)
            (cut,) = await desk.list_open(run)
        assert cut["diff"] == "The change of AGENTS.md is too long to show; the call has all of it.\n"
        assert looks == 1, "what is known is not compared again"
        bad = await desk.answer(item, 422, scope="always", rule="allow nothing")
        assert bad["code"] == "invalid_rule"
        await desk.answer(item, decision="denied", text="Leave it.")
        await desk.rest(run)
        denied = [step for step in await desk.context.app.steps(run) if step.work.executor == "rewrite"]
        assert [step.error for step in denied] == ["Denied by the person. Leave it."]


async def test_a_run_is_paused_instructed_resumed_forked_rewound_branched_and_discarded(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, finish = Gate(), call("finish", status="done", summary="It adds a test.")
    monkeypatch.setattr(GatedModel, "gates", {("coder", 2): gate})
    script = [Cue(agent="coder", turn=1, reply=write_test()), Cue(agent="coder", reply=finish)]
    async with open_desk(script, monkeypatch) as desk:
        run = await desk.start(request="add a test of the empty cart", confirm_checks=True)
        await asyncio.wait_for(gate.is_reached.wait(), 60)
        await desk.post(f"/runs/{run}/pause", now=True)
        gate.is_open.set()
        await desk.rest(run)
        paused = await desk.get(f"/runs/{run}")
        assert paused["state"] == "paused"
        assert (await desk.post(f"/runs/{run}/pause", 409))["code"] == "not_now"
        await desk.post(f"/runs/{run}/messages", text="Name it well.", to="coder")
        items = (await desk.get(f"/runs/{run}/messages"))["items"]
        assert [item["text"] for item in items] == ["add a test of the empty cart", "Name it well."]
        letter = items[-1]
        shown = {name: letter[name] for name in ("sender", "receivers", "text")}
        person = (await desk.get("/session"))["person"]
        assert shown == {"sender": person, "receivers": ["coder"], "text": "Name it well."}
        assert (await desk.get(f"/runs/{run}/messages", at=paused["head"]))["items"] == items[:1]
        assert (await desk.get(f"/runs/{run}/messages", cursor=letter["version"]))["items"] == []
        await desk.post(f"/runs/{run}/resume")
        assert await desk.allow(run) is None
        assert "Name it well." in str(desk.model.requests[-1].messages)
        detail = await desk.get(f"/runs/{run}")
        assert (detail["state"], detail["verdict"]) == ("finished", "verified")
        for name, status in (("main", 409), ("-x", 422), ("a b", 422), (" ", 422), ("\0", 422)):
            await desk.post(f"/runs/{run}/branch", status, branch=name)
        branched = await desk.post(f"/runs/{run}/branch", branch="empty-cart")
        assert branched["commit"] == git(shop, "rev-parse", "empty-cart")
        assert git(shop, "show", "empty-cart:tests/test_empty.py").startswith("import unittest")
        assert git(shop, "status", "--porcelain") == ""
        forks = [await desk.post(f"/runs/{run}/fork", version=version) for version in range(9, 21)]
        for asked, fork in enumerate(forks, 9):
            shown = await desk.get(f"/runs/{fork['run']}")
            assert shown["forked_from"] == {"run": run, "version": fork["version"]}
            assert shown["head"] > fork["version"]
            assert fork["version"] <= asked
            assert f" version {fork['version']}." in fork["message"]
        assert {asked - fork["version"] for asked, fork in enumerate(forks, 9)} > {0}, "only whole commits are kept"
        copy = forks[1]["run"]
        assert (await desk.get(f"/runs/{copy}"))["head"] == 11, "and one event says what it is a fork of"
        await desk.post(f"/runs/{copy}/cancel")
        assert (await desk.get(f"/runs/{copy}"))["state"] == "cancelled"
        assert (await desk.post(f"/runs/{run}/rewind", 422))["code"] == "invalid_version"
        again = TeamId((await desk.post(f"/runs/{run}/rewind", version=paused["head"], message="Once more."))["run"])
        assert again not in (run, copy)
        assert await desk.allow(again) is None
        assert "Once more." in str(desk.model.requests[-1].messages)
        assert (await desk.get(f"/runs/{again}/change"))["verdict"] == "verified"
        assert (await desk.post(f"/runs/{run}/discard", 409))["code"] == "not_sure"
        assert (await desk.get(f"/runs/{run}/change"))["state"] == "ready"
        await desk.post(f"/runs/{run}/discard", force=True)
        assert (await desk.get(f"/runs/{run}/change"))["state"] == "discarded"
        for verb in ("apply", "discard"):
            assert (await desk.post(f"/runs/{run}/{verb}", 409))["message"] == "The change is discarded."


async def test_of_pause_and_resume_one_is_possible_and_a_cancelled_run_has_not_failed(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    monkeypatch.setattr(GatedModel, "gates", {("coder", 1): gate})
    async with open_desk(coder(write_test()), monkeypatch) as desk:
        run = await desk.start(request="add a test of the empty cart", confirm_checks=True)
        await asyncio.wait_for(gate.is_reached.wait(), 60)
        running = "The run is paused, but steps of it still run. Wait until they end."
        for verb, expected in (
            ("pause", ("The run is paused.", "", running)),
            ("resume", ("", "The run works already.", "The run works. Pause it first.")),
        ):
            await desk.post(f"/runs/{run}/{verb}")
            why = {row["verb"]: row["why"] for row in (await desk.get(f"/runs/{run}"))["actions"]}
            assert (why["pause"], why["resume"], why["rewind"]) == expected
            assert (await desk.post(f"/runs/{run}/{verb}", 409))["message"] == why[verb]
        unknown = await desk.post(f"/runs/{run}/messages", 404, text="Name it well.", to="nobody")
        assert unknown["message"] == "There is no agent 'nobody' in this run."
        await desk.post(f"/runs/{run}/cancel")
        assert [row["id"] for row in (await desk.get("/runs", state="cancelled"))["items"]] == [run]
        assert (await desk.get("/runs", state="failed"))["items"] == []
        assert (await desk.get("/states", type="task"))["t1"]["execution_state"] == "cancelled"


async def test_a_file_whose_name_is_not_utf_8_is_listed_and_read(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "printf 'x = 1\\n' > \"$(printf 'bad\\377.py')\""
    async with open_desk(coder(call("execute_script", interpreter="bash", script=script)), monkeypatch) as desk:
        run = await desk.start(request="add a file", allow_unverified=True)
        await desk.allow(run)
        (file,) = (await desk.get(f"/runs/{run}/change"))["files"]
        assert file["path"] == "bad\\udcff.py"
        assert "+x = 1" in (await desk.get(f"/runs/{run}/change/file", path=file["path"]))["text"]
        assert (await desk.get(f"/runs/{run}/change/blame", path=file["path"]))["total"] == 1
        refused = await desk.client.get(f"/api/runs/{run}/change/blame", params={"path": "x\0"})
        assert (refused.status_code, refused.json()["message"]) == (404, "The change does not touch 'x\\x00'.")


async def test_a_rule_that_was_not_shown_is_not_granted_for_a_run(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_desk(coder(write_test()), monkeypatch) as desk:
        run = await desk.start(request="add a test of the empty cart", confirm_checks=True)
        item = await desk.ask(run)
        refused = await desk.answer(item, 422, scope="run", rule="allow command *")
        assert refused["code"] == "invalid_rule"
        assert [open_["id"] for open_ in await desk.list_open(run)] == [item["id"]]
        await desk.post(f"/runs/{run}/cancel")
        late = await desk.answer(item, 409)
        assert (late["code"], late["message"]) == ("gone", "The question is no longer open.")
        assert (await desk.answer({"run": run, "id": "coder#99?1"}, 404))["code"] == "unknown_item"


async def test_a_run_of_another_folder_says_where_it_goes_on(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_desk(coder(write_test()), monkeypatch) as desk:
        run = await desk.start(request="add a test of the empty cart", confirm_checks=True)
        item = await desk.ask(run)
        await desk.rest(run)
    make_repository(tmp_path / "other")
    monkeypatch.chdir(tmp_path / "other")
    where = (
        f"This run belongs to {shop}. Start `greenroom serve` there, or type `greenroom resume {run}` in a terminal."
    )
    async with open_desk([], monkeypatch) as desk:
        (item,) = await desk.list_open(run)
        assert (item["folder"], (await desk.get(f"/runs/{run}"))["folder"]) == (str(shop), str(shop))
        assert (await desk.answer(item, scope="run"))["hint"] == where
        assert (await desk.post(f"/runs/{run}/messages", text="Name it well."))["hint"] == where
        detail = await desk.get(f"/runs/{run}")
        why = {row["verb"]: row["why"] for row in detail["actions"]}
        assert detail["state"] == "stopped"
        assert (why["resume"], why["rewind"], why["pause"]) == (where, where, "No process runs it now.")
        for verb in ("resume", "rewind"):
            assert (await desk.post(f"/runs/{run}/{verb}", 409, version=9))["message"] == where
    monkeypatch.chdir(shop)
    async with open_desk(coder(write_test()), monkeypatch) as desk:
        why = {row["verb"]: row["why"] for row in (await desk.get(f"/runs/{run}"))["actions"]}
        assert (why["resume"], why["pause"]) == ("", "No process runs it now."), "one of the two"
        await desk.post(f"/runs/{run}/resume")
        assert await desk.allow(run) is None
        assert (await desk.get(f"/runs/{run}"))["verdict"] == "verified"


async def test_a_run_that_was_stopped_in_a_terminal_is_not_continued_by_the_server(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    monkeypatch.setattr(GatedModel, "gates", {("coder", 1): gate})
    async with open_desk(coder(write_test()), monkeypatch) as desk:
        run = await desk.start(request="add a test of the empty cart", confirm_checks=True)
        await gate.is_reached.wait()
    async with open_desk(coder(write_test()), monkeypatch) as desk:
        assert await desk.context.host.recover() == [run], "the server itself was stopped"
    async with open_desk(coder(write_test()), monkeypatch) as desk:
        await desk.runtime.start(run)  # as `greenroom resume` does; then Ctrl-C there
        await desk.runtime.stop(run)
    async with open_desk(coder(write_test()), monkeypatch) as desk:
        assert await desk.context.host.recover() == []
        assert (await desk.get(f"/runs/{run}"))["state"] == "stopped"


PLAN = call("propose_plan", steps=["Write a test"], files=["tests/test_empty.py"])


async def test_a_person_confirms_changes_or_refuses_the_plan_of_an_agent(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_desk(coder(PLAN, PLAN, write_test()), monkeypatch) as desk:
        run = await desk.start(request="add a test", allow_unverified=True)
        item = await desk.ask(run)
        assert (item["kind"], item["question"].splitlines()[1]) == ("plan", "1. Write a test")
        await desk.answer(item, text="Two tests.")
        again = await desk.allow(run, until="plan")
        assert again is not None
        assert "The person says: Two tests." in str(desk.model.requests[-1].messages)
        await desk.answer(again, text="yes")
        assert await desk.allow(run) is None
        assert (await desk.get(f"/runs/{run}"))["state"] == "finished"
    async with open_desk(coder(PLAN), monkeypatch) as desk:
        refused = await desk.start(request="add another test", allow_unverified=True)
        item = await desk.ask(refused)
        await desk.answer(item, decision="denied", text="Not this week.")
        await desk.rest(refused)
        detail, person = await desk.get(f"/runs/{refused}"), (await desk.get("/session"))["person"]
        assert (detail["state"], detail["verdict"], detail["answer"]) == ("cancelled", None, "")
        assert detail["reason"] == f"Refused by {person}: Not this week."
        (answered,) = (await desk.get(f"/runs/{refused}/events", type="ApprovalAnswered"))["items"]
        assert answered["text"].endswith("by a person")
        late = await desk.answer(item, 409, text="yes")
        assert late["message"] == "A person on the page has already answered: no: Not this week."


async def test_a_run_says_in_words_why_it_failed_or_stands(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chinese = {"accept-language": "zh"}
    async with open_desk(coder(call("finish", status="failed", summary="No such cart.")), monkeypatch) as desk:
        run = await desk.start(request="add a test", allow_unverified=True)
        await desk.rest(run)
        detail = await desk.get(f"/runs/{run}")
        assert (detail["state"], detail["reason"]) == ("failed", "It was given up: “No such cart.”")
        said = (await desk.client.get(f"/api/runs/{run}", headers=chinese)).json()
        assert said["reason"] == "已放弃：“No such cart.”"
        rows = (await desk.client.get("/api/runs", headers=chinese)).json()["items"]
        assert [row["reason"] for row in rows] == [said["reason"]]
        assert [row["reason"] for row in (await desk.get("/runs"))["items"]] == [detail["reason"]]
    async with open_desk(coder(write_test()), monkeypatch) as desk:
        run = await desk.start(request="add a test of the empty cart")
        await desk.ask(run)
        await desk.post(f"/runs/{run}/pause")
        await desk.rest(run)
        assert (await desk.get(f"/runs/{run}"))["reason"] == "paused by a person"
        assert (await desk.client.get(f"/api/runs/{run}", headers=chinese)).json()["reason"] == "已被人暂停"


async def test_without_a_model_the_session_and_a_start_say_what_to_do(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GREENROOM_MODEL", "openai:gpt-5")
    async with open_site(tmp_path / "home") as site:
        session = (await site.client.get("/api/session", headers=site.token)).json()
        assert session["model"] == ""
        assert session["model_hint"].startswith("There is no key for 'openai'.")
        body = {"request": "add a test", "question": True}
        refused = await site.client.post("/api/runs", json=body, headers=site.token)
        assert (refused.status_code, refused.json()["message"]) == (409, session["model_hint"])
        body = {"request": "add a test", "model": "openai:gpt-5"}
        refused = await site.client.post("/api/plans", json=body, headers=site.token)
        assert (refused.status_code, refused.json()["message"]) == (409, session["model_hint"])


async def test_a_folder_without_git_says_what_makes_branches_possible(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(shop / ".git")
    async with open_desk(coder(write_test()), monkeypatch) as desk:
        (note,) = (await desk.post("/plans", request="add a test of the empty cart"))["notes"]
        assert note.endswith("For commits and branches type `git init` there and make one commit.")
        run = await desk.start(request="add a test of the empty cart", allow_unverified=True)
        assert await desk.allow(run) is None
        refused = await desk.post(f"/runs/{run}/branch", 409, branch="x")
        assert refused["message"].endswith("type `git init` there and make one commit.")
        assert (await desk.post(f"/runs/{run}/apply"))["message"] == "Applied: 1 file."
        assert (await desk.post(f"/runs/{run}/undo"))["message"] == "Undone: tests/test_empty.py."
        named = (("config", "user.name", "Ann"), ("config", "user.email", "ann@example.org"))
        for words in (("init", "-q"), *named, ("add", "-A"), ("commit", "-qm", "shop")):  # as the sentence says
            git(shop, *words)
        branched = await desk.post(f"/runs/{run}/branch", branch="empty-cart")
        assert branched["commit"] == git(shop, "rev-parse", "empty-cart")
        assert (await desk.post(f"/runs/{run}/apply"))["message"] == "Applied: 1 file."
        assert (await desk.post(f"/runs/{run}/undo"))["message"] == "Undone: tests/test_empty.py."
        again = await desk.start(request="add a test", allow_unverified=True)
        assert await desk.allow(again) is None
        assert (await desk.post(f"/runs/{again}/apply"))["commit"]
        shutil.rmtree(shop / ".git")
        last = await desk.start(request="add a test", allow_unverified=True)
        assert await desk.allow(last) is None


async def test_an_undo_below_later_commits_is_made_by_a_commit_when_it_is_confirmed(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_desk(coder(write_test()), monkeypatch) as desk:
        run = await desk.start(request="add a test of the empty cart", allow_unverified=True)
        assert await desk.allow(run) is None
        await desk.post(f"/runs/{run}/apply")
        (shop / "more.txt").write_text("more\n")
        git(shop, "add", "more.txt")
        git(shop, "commit", "-qm", "more")
        refused = await desk.post(f"/runs/{run}/undo", 409)
        assert (refused["code"], refused["hint"]) == ("buried", "Confirm this to undo it by a new commit.")
        assert (await desk.post(f"/runs/{run}/undo", force=True))["commit"]
        assert not (shop / "tests/test_empty.py").exists()
