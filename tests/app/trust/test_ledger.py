"""The ledger: a yes is to one thing in one form in one workspace, and nothing else is taken for one."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.app.trust import KEPT, NAME, Brought, Ledger, own_ledger
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve

TOOL = Brought(kind="tool", name="weather.py", shown="…", digest="1")
AGENT = Brought(kind="agent", name="bob", shown="…", digest="1")
THINGS = st.builds(
    Brought,
    kind=st.sampled_from(["agent", "tool", "server", "callback"]),
    name=st.sampled_from(["a", "b", "\x1b[2J", "ü"]),
    shown=st.just(""),
    digest=st.sampled_from(["1", "2"]),
)


@pytest.fixture(name="ledger")
def a_ledger(tmp_path: Path) -> Ledger:
    """Nobody has agreed to anything."""
    return Ledger(tmp_path / "config" / NAME)


def test_nothing_is_trusted_before_somebody_agrees_and_then_only_that(ledger: Ledger, tmp_path: Path) -> None:
    assert not ledger.trusted(tmp_path)(TOOL)
    ledger.agree(tmp_path, [TOOL])
    trusted = ledger.trusted(tmp_path)
    assert trusted(TOOL)
    assert trusted(evolve(TOOL, shown="other words for the same bytes"))
    assert not trusted(AGENT)
    assert not trusted(evolve(TOOL, kind="callback"))
    assert not trusted(evolve(TOOL, name="other.py"))
    assert not ledger.trusted(tmp_path / "elsewhere")(TOOL)


def test_what_has_changed_needs_a_new_yes_and_the_others_keep_theirs(ledger: Ledger, tmp_path: Path) -> None:
    ledger.agree(tmp_path, [TOOL, AGENT])
    changed = evolve(TOOL, digest="2")
    standing = ledger.standing(tmp_path)
    assert [standing(one) for one in (TOOL, AGENT, changed, evolve(AGENT, name="eve"))] == [
        "agreed",
        "agreed",
        "changed",
        "new",
    ]
    ledger.agree(tmp_path, [changed])
    assert all(map(ledger.trusted(tmp_path), (TOOL, AGENT, changed))), "who goes back to a branch is not asked again"


def test_a_workspace_is_its_real_folder(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    ledger.agree(tmp_path / "link", [TOOL])
    assert ledger.trusted(tmp_path / "real")(TOOL)


def test_all_of_one_workspace_is_taken_back(ledger: Ledger, tmp_path: Path) -> None:
    ledger.agree(tmp_path / "a", [TOOL, AGENT, evolve(TOOL, digest="2")])
    ledger.agree(tmp_path / "b", [TOOL])
    assert ledger.revoke(tmp_path / "a") == 2
    assert ledger.revoke(tmp_path / "a") == 0
    assert not ledger.trusted(tmp_path / "a")(TOOL)
    assert ledger.trusted(tmp_path / "b")(TOOL)


def test_only_its_owner_can_read_or_write_it(ledger: Ledger, tmp_path: Path) -> None:
    ledger.agree(tmp_path, [TOOL])
    assert ledger.path.stat().st_mode & 0o777 == 0o600
    ledger.path.chmod(0o602)
    with pytest.raises(WorldFault, match="others can write it"):
        ledger.trusted(tmp_path)(TOOL)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"agreed": 5}', '{"version": 2}', '{"agreed": {"/x": [{"kind": "tool"}]}}', "\xff", "[" * 5000],
)
def test_a_ledger_that_cannot_be_read_trusts_nothing_and_says_so(ledger: Ledger, tmp_path: Path, text: str) -> None:
    ledger.path.parent.mkdir()
    ledger.path.write_bytes(text.encode("latin-1"))
    ledger.path.chmod(0o600)
    with pytest.raises(WorldFault, match=r"cannot be read: .* Nobody knows what you have agreed to"):
        ledger.trusted(tmp_path)(TOOL)
    with pytest.raises(WorldFault, match="cannot be read"):
        ledger.agree(tmp_path, [TOOL])
    assert ledger.path.read_bytes() == text.encode("latin-1"), "it is left for whoever mends it"


def test_a_folder_in_its_place_and_a_file_in_the_place_of_its_folder_are_said(ledger: Ledger, tmp_path: Path) -> None:
    ledger.path.mkdir(parents=True)
    with pytest.raises(WorldFault, match="cannot be read"):
        ledger.trusted(tmp_path)(TOOL)
    (tmp_path / "file").write_text("")
    with pytest.raises(WorldFault, match=r"cannot be written: File exists. Nothing was changed"):
        Ledger(tmp_path / "file" / NAME).agree(tmp_path, [TOOL])


def test_who_asks_nothing_does_not_need_the_file(ledger: Ledger, tmp_path: Path) -> None:
    ledger.path.parent.mkdir()
    ledger.path.write_text("{")
    ledger.trusted(tmp_path)


def test_two_who_agree_at_once_lose_nothing(ledger: Ledger, tmp_path: Path) -> None:
    some = [evolve(TOOL, name=f"{number}.py") for number in range(24)]
    threads = [threading.Thread(target=ledger.agree, args=(tmp_path, [one])) for one in some]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    assert all(map(ledger.trusted(tmp_path), some))


def test_old_forms_of_a_thing_are_forgotten_in_the_end(ledger: Ledger, tmp_path: Path) -> None:
    forms = [evolve(TOOL, digest=str(number)) for number in range(KEPT + 1)]
    for one in forms:
        ledger.agree(tmp_path, [one])
    trusted = ledger.trusted(tmp_path)
    assert [trusted(one) for one in forms] == [False, *itertools.repeat(True, KEPT)]


@settings(max_examples=40, deadline=None)
@given(steps=st.lists(st.one_of(st.lists(THINGS, max_size=3), st.none()), max_size=8), asked=THINGS)
def test_exactly_what_was_agreed_to_since_the_last_revocation_is_trusted(
    tmp_path_factory: pytest.TempPathFactory, steps: list[list[Brought] | None], asked: Brought
) -> None:
    folder = tmp_path_factory.mktemp("ledger")
    ledger, agreed = Ledger(folder / NAME), set[Brought]()
    for some in steps:
        if some is None:
            ledger.revoke(folder)
            agreed.clear()
        else:
            ledger.agree(folder, some)
            agreed.update(some)
    assert ledger.trusted(folder)(asked) == (asked in agreed)


def test_it_lies_beside_the_persons_settings_whatever_file_is_named_for_them(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other.toml").write_text("")
    monkeypatch.setenv("GREENROOM_CONFIG", str(tmp_path / "other.toml"))
    assert own_ledger().path == config / NAME
