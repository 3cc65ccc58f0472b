"""Data folders of earlier code: shown, replayed, compared, undone and resumed by today's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.company import GUIDE, Company
from tests.acceptance.kit import JSON, VERIFIED, WAITING, Desk, Turns, fields, git, rows, serve_model, snapshot
from tests.acceptance.make_data import WAITS, hold, unpack


@pytest.fixture(name="waiting")
def _waiting() -> Iterator[Desk]:
    with hold("waiting") as folder:
        yield unpack("waiting", folder)


@pytest.fixture(name="applied")
def _applied() -> Iterator[Desk]:
    with hold("applied") as folder:
        yield unpack("applied", folder)


@pytest.fixture(name="organisation")
def _organisation() -> Iterator[Desk]:
    with hold("organisation") as folder:
        yield unpack("organisation", folder)


def runs(desk: Desk) -> dict[str, dict[str, object]]:
    """The runs by what was asked for."""
    return {str(row["name"]): row for row in rows(desk.type("runs", "--all", *JSON).json["tasks"])}


def is_readable(desk: Desk, run: str) -> bool:
    """Whether show, events and replay agree about a run."""
    shown, replayed = desk.show(run), desk.type("replay", run, *JSON)
    return (replayed.code, replayed.json["version"]) == (0, shown["version"]) and len(desk.events(run)) > 2


def test_a_run_that_waits_is_shown_and_replayed(waiting: Desk) -> None:
    run = str(runs(waiting)["Paint it."]["team"])
    assert is_readable(waiting, run)
    (waits,) = rows(waiting.type("approvals", "list", *JSON).json["approvals"])
    assert waits["team"] == run
    patch = waiting.type("diff", run)
    assert (patch.code, "+good, red" in patch.out) == (0, True)
    (space,) = rows(waiting.type("workspaces", "list", *JSON).json["workspaces"])
    assert Path(str(space["folder"]), "app.txt").read_text() == "good, red\n"


def test_a_run_that_waits_is_answered_resumed_applied_and_undone(waiting: Desk) -> None:
    before = snapshot(waiting.repo)
    with serve_model(Turns(*WAITS)) as server:
        assert waiting.type("resume", "last", *JSON, **server.reach).code == WAITING
        assert (server.asked, waiting.type("answer", "last", "yes").code) == (0, 0)
        ended = waiting.answer_all(waiting.type("resume", "last", *JSON, **server.reach), **server.reach)
        assert server.asked == 1, "only the last reply was missing"
    assert ended.code == VERIFIED, ended.err
    assert snapshot(waiting.repo) == before
    assert waiting.type("apply", "last").code == 0
    assert (waiting.read(), waiting.read("made.txt")) == ("good, red\n", "made\n")
    assert waiting.type("undo", "last").code == 0
    assert snapshot(waiting.repo) == before


def test_an_applied_run_is_shown_replayed_blamed_and_undone(applied: Desk) -> None:
    known = runs(applied)
    run = str(known["Paint it."]["team"])
    assert all(is_readable(applied, str(row["team"])) for row in known.values())
    assert "+good, red" in applied.type("diff", run).out
    assert "-good" in applied.type("diff", str(known["Break it."]["team"])).out
    assert applied.type("blame", "app.txt:1", *JSON).json["run"] == run
    assert applied.type("resume", run, *JSON).code == 0
    assert applied.type("undo", run, *JSON).json["status"] == "undone"
    assert (applied.read(), git(applied.repo, "status", "--porcelain")) == ("good\n", "")
    assert applied.type("apply", run).code == 0
    assert applied.type("undo", run, "--revert").code == 0
    assert applied.read() == "good\n"


def test_consent_and_pins_still_hold(applied: Desk) -> None:
    assert applied.type("trust", "--list", *JSON).json["open"] == 0
    (server,) = rows(applied.type("mcp", "check", *JSON).json["servers"])
    assert (server["agreed"], server["changes"]) == (True, [])


def test_a_stored_verdict_of_before_is_read(applied: Desk) -> None:
    known = runs(applied)
    codes = {name: fields(applied.show(str(row["team"]))["verdict"])["code"] for name, row in known.items()}
    assert codes["Paint it."] == "verified"
    assert codes["Judge it."] == "unverified"
    assert codes["Break it."] in ("failed", "unverified")


def test_an_organisation_goes_on_with_what_it_had_asked(organisation: Desk) -> None:
    team = str(next(row["team"] for row in rows(organisation.type("org", "list", *JSON).json["teams"])))
    assert is_readable(organisation, team)
    inbox = organisation.type("inbox", "--list", *JSON)
    (letter,) = rows(inbox.json["letters"])
    assert (inbox.code, letter["number"], letter["message"]) == (0, 1, "Which one?")
    steps = fields(organisation.type("org", "status", "--type", "step", *JSON).json["states"])
    assert {str(fields(step)["agent_id"]) for step in steps.values()} == {"ann", "manager"}
    with serve_model(Company(begun=True)) as server:
        ended = organisation.type("inbox", "--wait", stdin="/answer 1 Sencha.\n", **server.reach)
    assert (ended.code, GUIDE in ended.out) == (0, True), ended.err
