"""Team runs in real processes: interrupted by a person or a kill, resumed, and approved at a terminal."""

import signal
import threading
from pathlib import Path

import pytest

from tests.e2e.jobs import Desk, call, exactly, git
from tests.e2e.provider import provider, reached
from tests.e2e.terminal import PATIENCE, Running
from tests.e2e.typing import CTRL_C, ENTER
from tests.fake_openai import Answer
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")
ITEMS = ("a.py", "b.py", "c.py")


class Porters:
    """A model that rewrites the file of each item. The second turn of `held` waits for `release`."""

    def __init__(self, held: str = "", asks: str = "") -> None:
        self.asks, self.held, self.reached, self.release = asks, held, threading.Event(), threading.Event()
        self.asked: list[tuple[str, int]] = []

    def __call__(self, body: dict[str, object], _: int) -> Answer:
        messages = body["messages"]
        assert isinstance(messages, list)
        turn = sum(one["role"] == "assistant" for one in messages)
        item = next(item for item in ITEMS if f"Do this only for: {item}" in str(messages))
        self.asked.append((item, turn))
        if turn == 0 and item == self.asks:
            return call("execute_script", 1, interpreter="bash", script=f"sed -i s/1/2/ {item}")
        if turn == 0:
            return call("patch", 1, file=item, edits=[{"search": "1", "replace": "2"}])
        if item == self.held:
            self.reached.set()
            assert self.release.wait(PATIENCE)
        return call("answer", 2, status="done", summary=f"ported {item}")


@pytest.fixture(name="desk")
def _desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path / "home", tmp_path / "repo")
    desk.repo.mkdir()
    for name in ITEMS:
        (desk.repo / name).write_text("x = 1\n")
    (desk.repo / "test_it.py").write_text("def test_it():\n    assert True\n")
    git(desk.repo, "init", "--quiet", "--initial-branch=main")
    git(desk.repo, "add", "--all")
    git(desk.repo, "commit", "--quiet", "--message=first")
    return desk


JSON = ("--output-format", "json")
BATCH = ("batch", "port it", *ITEMS, "--concurrency", "2", "--yes")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_batch_goes_on_where_it_stopped(desk: Desk, number: signal.Signals) -> None:
    before, model = exactly(desk.repo), Porters(held="c.py")
    with provider(model) as fake:
        with Running(
            desk.home, *BATCH, through=("env", "-C", str(desk.repo)), **{**desk.own, **reached(fake)}
        ) as first:
            assert model.reached.wait(PATIENCE)
            for item in ("a-py", "b-py"):
                first.until(f"finished '{item}'")
            first.send(number)
            if number == signal.SIGINT:
                first.until("Ctrl-C again stops now.")
                first.send(number)
            assert first.end().code in (130, -signal.SIGKILL)
        model.release.set()
        assert "team, 2 of 3 subtasks" in desk.types("runs").out
        again = desk.types("resume", "last", "--yes", *JSON, **reached(fake))
    assert (again.code, again.json["verified"]) == (0, True), again.err
    assert exactly(desk.repo) == before
    assert model.asked.count(("c.py", 0)) == 1, "what was done is not done again"
    rows = again.json["subtasks"]
    assert isinstance(rows, list)
    assert {row["attempt"] for row in rows} == {1}
    assert {row["title"]: row["files"] for row in rows if row["files"]} == {item: [item] for item in ITEMS}
    kept = desk.types("workspaces", "list", *JSON).json["workspaces"]
    assert isinstance(kept, list)
    assert len(kept) == 1, kept
    assert desk.types("apply", "last").code == 0
    assert {(desk.repo / item).read_text() for item in ITEMS} == {"x = 2\n"}


def test_a_person_stops_a_batch_with_a_key_and_resumes_it_without_any_question(desk: Desk) -> None:
    model = Porters(held="c.py")
    with provider(model) as fake:
        with desk.sits(fake, *BATCH) as terminal:
            assert model.reached.wait(PATIENCE)
            terminal.press(CTRL_C)
            terminal.until("Ctrl-C again stops now.")
            model.release.set()
            terminal.until("Stopped. Continue with: greenroom resume")
            assert terminal.ends() == 130
        assert desk.types("cost", *JSON).json["reserved_calls"] == 0, "the calls in flight have ended"
        with desk.sits(fake, "resume", "last", "--yes") as terminal:
            shown = terminal.until("[a] apply")
            assert "[y] use all" not in shown
            assert "Verified" in shown
            terminal.press("a", ENTER)
            assert terminal.ends() == 0
    assert {(desk.repo / item).read_text() for item in ITEMS} == {"x = 2\n"}


def test_a_batch_that_another_terminal_cancels_says_cancelled(desk: Desk) -> None:
    model = Porters(held="c.py")
    with provider(model) as fake, desk.sits(fake, *BATCH) as terminal:
        assert model.reached.wait(PATIENCE)
        assert desk.types("cancel", "last").code == 0
        model.release.set()
        table = terminal.until("✗ Cancelled:").rpartition("result")[2]
        assert ("cancelled" in table, "the stage is over" in table) == (True, False), table
        terminal.until("[a] apply")
        terminal.press(ENTER)
        assert terminal.ends() == 1


def test_a_question_of_one_specialist_is_asked_when_the_others_are_done(desk: Desk) -> None:
    model = Porters(asks="b.py")
    with provider(model) as fake, desk.sits(fake, *BATCH, GREENROOM_SANDBOX="off") as terminal:
        shown = terminal.until("[y] once")
        assert "finished 'a-py'" in shown
        assert "finished 'c-py'" in shown
        assert "refactor-2 asks, for subtask b-py (b.py):" in shown
        terminal.press("y", ENTER)
        terminal.until("lead asks, for subtask verify (Verify):")
        terminal.until("[y] once")
        terminal.press(CTRL_C)
        terminal.until("Your turn: greenroom answer")
        assert terminal.ends() == 130
    assert desk.types("answer", "last", "yes").code == 0
    ended = desk.types("resume", "last", "--yes", "--apply", GREENROOM_SANDBOX="off", **reached(fake))
    assert ended.code == 0, ended.err
    assert {(desk.repo / item).read_text() for item in ITEMS} == {"x = 2\n"}


def test_without_a_sandbox_and_a_person_it_says_what_to_do_and_the_change_is_kept(desk: Desk) -> None:
    with provider(Porters()) as fake:
        words = ("batch", "port it", *ITEMS, "--yes", "--non-interactive")
        ended = desk.types(*words, GREENROOM_SANDBOX="off", **reached(fake))
        assert "Not finished (1): verify. The checks did not run: lead wants to use deliver. It would run" in ended.err
    assert "The change is kept. Set up a sandbox (see `greenroom doctor`), or leave out --non-interactive" in ended.err
    assert (ended.code, desk.types("diff", "last").out.count("+x = 2")) == (1, 3)
