"""Team runs in real processes: interrupted by a person or a kill, resumed, and approved at a terminal."""

import signal
import threading
from pathlib import Path

import pytest

from tests.e2e.jobs import Desk, call, exactly, git
from tests.e2e.provider import provider, reached
from tests.e2e.terminal import PATIENCE, Running
from tests.fake_openai import Answer
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")
ITEMS = ("a.py", "b.py", "c.py")


class Porters:
    """A model that rewrites the file of each item. The second turn of `held` waits for `release`."""

    def __init__(self, held: str = "") -> None:
        self.held, self.reached, self.release = held, threading.Event(), threading.Event()
        self.asked: list[tuple[str, int]] = []

    def __call__(self, body: dict[str, object], _: int) -> Answer:
        messages = body["messages"]
        assert isinstance(messages, list)
        turn = sum(one["role"] == "assistant" for one in messages)
        item = next(item for item in ITEMS if f"Do this only for: {item}" in str(messages))
        self.asked.append((item, turn))
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
