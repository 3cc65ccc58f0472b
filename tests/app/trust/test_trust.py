"""What a workspace brings, and what a person has agreed to."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.app.agents.discovery import find_agents
from greenroom.app.trust import (
    MAX_FORMS_KEPT,
    MAX_SCRIPT_BYTES,
    MAX_SCRIPTS,
    TRUST_FILE_NAME,
    TrustItem,
    TrustStore,
    find_troubles,
    find_trust_items,
    keep_trusted_agents,
    open_trust_store,
    read_project_scripts,
)
from greenroom.core.base.errors import RefusedError, WorldFault
from greenroom.core.base.records import evolve
from tests.app.agents.folders import written

TOOL = TrustItem(kind="tool", name="weather.py", shown="…", digest="1")
AGENT = TrustItem(kind="agent", name="bob", shown="…", digest="1")
THINGS = st.builds(
    TrustItem,
    kind=st.sampled_from(["agent", "tool", "server", "callback"]),
    name=st.sampled_from(["a", "b", "\x1b[2J", "ü"]),
    shown=st.just(""),
    digest=st.sampled_from(["1", "2"]),
)


@pytest.fixture(name="ledger")
def a_ledger(tmp_path: Path) -> TrustStore:
    """Nobody has agreed to anything."""
    return TrustStore(tmp_path / "config" / TRUST_FILE_NAME)


def test_nothing_is_trusted_before_somebody_agrees_and_then_only_that(ledger: TrustStore, tmp_path: Path) -> None:
    assert not ledger.make_trust_check(tmp_path)(TOOL)
    ledger.trust_items(tmp_path, [TOOL])
    trusted = ledger.make_trust_check(tmp_path)
    assert trusted(TOOL)
    assert trusted(evolve(TOOL, shown="other words for the same bytes"))
    assert not trusted(AGENT)
    assert not trusted(evolve(TOOL, kind="callback"))
    assert not trusted(evolve(TOOL, name="other.py"))
    assert not ledger.make_trust_check(tmp_path / "elsewhere")(TOOL)


def test_what_has_changed_needs_a_new_yes_and_the_others_keep_theirs(ledger: TrustStore, tmp_path: Path) -> None:
    ledger.trust_items(tmp_path, [TOOL, AGENT])
    changed = evolve(TOOL, digest="2")
    standing = ledger.make_classifier(tmp_path)
    assert [standing(one) for one in (TOOL, AGENT, changed, evolve(AGENT, name="eve"))] == [
        "agreed",
        "agreed",
        "changed",
        "new",
    ]
    ledger.trust_items(tmp_path, [changed])
    assert all(map(ledger.make_trust_check(tmp_path), (TOOL, AGENT, changed))), (
        "who goes back to a branch is not asked again"
    )


def test_a_workspace_is_its_real_folder(ledger: TrustStore, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    ledger.trust_items(tmp_path / "link", [TOOL])
    assert ledger.make_trust_check(tmp_path / "real")(TOOL)


def test_all_of_one_workspace_is_taken_back(ledger: TrustStore, tmp_path: Path) -> None:
    ledger.trust_items(tmp_path / "a", [TOOL, AGENT, evolve(TOOL, digest="2")])
    ledger.trust_items(tmp_path / "b", [TOOL])
    assert ledger.revoke(tmp_path / "a") == 2
    assert ledger.revoke(tmp_path / "a") == 0
    assert not ledger.make_trust_check(tmp_path / "a")(TOOL)
    assert ledger.make_trust_check(tmp_path / "b")(TOOL)


def test_only_its_owner_can_read_or_write_it(ledger: TrustStore, tmp_path: Path) -> None:
    ledger.trust_items(tmp_path, [TOOL])
    assert ledger.path.stat().st_mode & 0o777 == 0o600
    ledger.path.chmod(0o602)
    with pytest.raises(WorldFault, match="other users can write it"):
        ledger.make_trust_check(tmp_path)(TOOL)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"agreed": 5}', '{"version": 2}', '{"agreed": {"/x": [{"kind": "tool"}]}}', "\xff", "[" * 5000],
)
def test_a_ledger_that_cannot_be_read_trusts_nothing_and_says_so(ledger: TrustStore, tmp_path: Path, text: str) -> None:
    ledger.path.parent.mkdir()
    ledger.path.write_bytes(text.encode("latin-1"))
    ledger.path.chmod(0o600)
    with pytest.raises(WorldFault, match=r"cannot be read: .* Your trust decisions are unknown"):
        ledger.make_trust_check(tmp_path)(TOOL)
    with pytest.raises(WorldFault, match="cannot be read"):
        ledger.trust_items(tmp_path, [TOOL])
    assert ledger.path.read_bytes() == text.encode("latin-1"), "it is left for whoever mends it"


def test_a_folder_in_its_place_and_a_file_in_the_place_of_its_folder_are_said(
    ledger: TrustStore, tmp_path: Path
) -> None:
    ledger.path.mkdir(parents=True)
    with pytest.raises(WorldFault, match="cannot be read"):
        ledger.make_trust_check(tmp_path)(TOOL)
    (tmp_path / "file").write_text("")
    with pytest.raises(WorldFault, match=r"cannot be written: File exists. Nothing was changed"):
        TrustStore(tmp_path / "file" / TRUST_FILE_NAME).trust_items(tmp_path, [TOOL])


def test_who_asks_nothing_does_not_need_the_file(ledger: TrustStore, tmp_path: Path) -> None:
    ledger.path.parent.mkdir()
    ledger.path.write_text("{")
    ledger.make_trust_check(tmp_path)


def test_two_who_agree_at_once_lose_nothing(ledger: TrustStore, tmp_path: Path) -> None:
    some = [evolve(TOOL, name=f"{number}.py") for number in range(24)]
    threads = [threading.Thread(target=ledger.trust_items, args=(tmp_path, [one])) for one in some]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    assert all(map(ledger.make_trust_check(tmp_path), some))


def test_old_forms_of_a_thing_are_forgotten_in_the_end(ledger: TrustStore, tmp_path: Path) -> None:
    forms = [evolve(TOOL, digest=str(number)) for number in range(MAX_FORMS_KEPT + 1)]
    for one in forms:
        ledger.trust_items(tmp_path, [one])
    trusted = ledger.make_trust_check(tmp_path)
    assert [trusted(one) for one in forms] == [False, *itertools.repeat(True, MAX_FORMS_KEPT)]


@settings(max_examples=40, deadline=None)
@given(steps=st.lists(st.one_of(st.lists(THINGS, max_size=3), st.none()), max_size=8), asked=THINGS)
def test_exactly_what_was_agreed_to_since_the_last_revocation_is_trusted(
    tmp_path_factory: pytest.TempPathFactory, steps: list[list[TrustItem] | None], asked: TrustItem
) -> None:
    folder = tmp_path_factory.mktemp("ledger")
    ledger, agreed = TrustStore(folder / TRUST_FILE_NAME), set[TrustItem]()
    for some in steps:
        if some is None:
            ledger.revoke(folder)
            agreed.clear()
        else:
            ledger.trust_items(folder, some)
            agreed.update(some)
    assert ledger.make_trust_check(folder)(asked) == (asked in agreed)


def test_it_lies_beside_the_persons_settings_whatever_file_is_named_for_them(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other.toml").write_text("")
    monkeypatch.setenv("GREENROOM_CONFIG", str(tmp_path / "other.toml"))
    assert open_trust_store().path == config / TRUST_FILE_NAME


BOB = "---\ndescription: Knows\n  weather.\ntools: [forecast]\ngroups: [read]\ncalls: [ann]\nmodel: fast\n---\nDo it.\n"
CLAUDES = "---\nname: ann\ndescription: Reviews.\n---\nReview.\n"
TOOLS = "import os\nraise SystemExit\nX: int = 1\nY = 2\ndef forecast(): ...\nasync def later(): ...\nclass Say: ...\n"


@pytest.fixture(name="brings")
def a_clone(project: Path) -> Path:
    """A project that brings one of each."""
    written(project / ".greenroom" / "agents" / "bob.md", BOB)
    written(project / ".claude" / "agents" / "ann.md", CLAUDES)
    written(project / ".greenroom" / "tools" / "weather.py", TOOLS)
    written(project / ".greenroom" / "tools" / "_shared.py", "")
    written(project / ".greenroom" / "callbacks" / "audit.py", "def after_tool_call_cb(call): ...")
    return project


def digests(root: Path) -> dict[str, str]:
    return {one.name: one.digest for one in find_trust_items(root)}


def test_everything_that_could_act_is_listed_with_what_it_wants(brings: Path) -> None:
    server = TrustItem(kind="server", name="files", shown="npx files", digest="1")
    assert [(one.kind, one.name, one.shown) for one in find_trust_items(brings, [server])] == [
        ("agent", "ann", ".claude/agents/ann.md · Reviews. · groups: read, edit, command, web"),
        (
            "agent",
            "bob",
            ".greenroom/agents/bob.md · Knows weather. · tools: forecast · groups: read · calls: ann · model: fast",
        ),
        ("tool", "weather.py", ".greenroom/tools/weather.py · defines X, Y, forecast, later, Say"),
        ("callback", "audit.py", ".greenroom/callbacks/audit.py · defines after_tool_call_cb"),
        ("server", "files", "npx files"),
    ]


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        (".greenroom/agents/bob.md", {"bob"}),
        (".claude/agents/ann.md", {"ann"}),
        (".greenroom/tools/weather.py", {"weather.py"}),
        (".greenroom/tools/_shared.py", {"weather.py"}),
        (".greenroom/tools/pkg/deep.py", set()),
        (".greenroom/tools/notes.txt", set()),
        (".greenroom/callbacks/audit.py", {"audit.py"}),
        ("src/main.py", set()),
    ],
)
def test_a_byte_more_is_another_thing_and_only_that(brings: Path, file: str, changes: set[str]) -> None:
    before = digests(brings)
    path = brings / file
    written(path, (path.read_text("utf-8") if path.exists() else "") + "\n")
    after = digests(brings)
    assert {name for name in before if before[name] != after[name]} == changes


def test_where_a_file_stands_is_agreed_to_as_well(project: Path) -> None:
    first = written(project / ".greenroom" / "agents" / "ann.md", CLAUDES)
    before = digests(project)
    written(project / ".claude" / "agents" / "ann.md", CLAUDES)
    first.unlink()
    assert before["ann"] != digests(project)["ann"]


def test_names_and_bytes_cannot_change_places(project: Path) -> None:
    tools = project / ".greenroom" / "tools"
    written(tools / "a.py", "x=1\n")
    written(tools / "b.py", "x=2\n")
    before = digests(project)
    written(tools / "a.py", "x=2\n")
    written(tools / "b.py", "x=1\n")
    after = digests(project)
    assert before["a.py"] != after["a.py"]
    assert before["b.py"] != after["b.py"]
    assert before["a.py"] != before["b.py"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "defines nothing"),
        ("def (\0", "defines nothing"),
        ("class A:\n    def b(): ...\nC: int = 1\nasync def d(): ...\nd == 2", "defines A, C, d"),
    ],
)
def test_a_file_is_listed_with_what_it_defines_whatever_stands_in_it(project: Path, text: str, told: str) -> None:
    written(project / ".greenroom" / "tools" / "x.py", text)
    (one,) = find_trust_items(project)
    assert one.shown == f".greenroom/tools/x.py · {told}"


def test_of_many_names_some_are_told(project: Path) -> None:
    written(project / ".greenroom" / "tools" / "x.py", "\n".join(f"a{number} = 1" for number in range(40)))
    (one,) = find_trust_items(project)
    assert one.shown.endswith("a11 and 28 more")


def test_no_link_leads_out(project: Path, tmp_path: Path) -> None:
    tools = project / ".greenroom" / "tools"
    written(tools / "x.py", "")
    written(project / "scripts" / "deploy.py", "def deploy(): ...")
    (tools / "deploy.py").symlink_to(project / "scripts" / "deploy.py")
    assert set(digests(project)) == {"x.py", "deploy.py"}, "a link inside of the workspace is a file like others"
    outside = written(tmp_path / "outside" / "evil.py", "")
    (tools / "evil.py").symlink_to(outside)
    assert "evil.py: is a link that leads outside" in find_troubles(project)[0]
    (tools / "odd.py").mkdir()
    assert set(digests(project)) == {"x.py", "deploy.py"}


def test_a_folder_that_is_a_link_out_of_the_workspace_is_not_read(project: Path, tmp_path: Path) -> None:
    written(tmp_path / "outside" / "evil.py", "")
    (project / ".greenroom").mkdir()
    (project / ".greenroom" / "tools").symlink_to(tmp_path / "outside")
    assert read_project_scripts(project, "tool").scripts == ()
    assert "leads out of the workspace" in find_troubles(project)[0]


def test_a_folder_with_too_many_files_or_too_long_a_file_is_not_used(project: Path) -> None:
    tools = project / ".greenroom" / "tools"
    written(tools / "long.py", "#" * (MAX_SCRIPT_BYTES + 1))
    assert "is longer than 1000 KB" in find_troubles(project)[0]
    for number in range(MAX_SCRIPTS):
        written(tools / f"_{number}.py", "")
    assert f"holds more than {MAX_SCRIPTS} files" in find_troubles(project)[0]


def test_a_place_for_everybody_brings_nothing(brings: Path) -> None:
    brings.chmod(0o1777)
    assert find_trust_items(brings) == ()


def test_an_agent_that_nobody_agreed_to_is_not_there_and_says_why(brings: Path, tmp_path: Path) -> None:
    ledger = TrustStore(tmp_path / "trust.json")
    found = find_agents(brings)
    none = keep_trusted_agents(found, brings, ledger.make_trust_check(brings))
    assert none.specs == {}
    with pytest.raises(WorldFault, match=r"'bob' is from .*bob\.md, and it is not trusted yet: run `greenroom trust`"):
        none.get("bob")
    with pytest.raises(RefusedError, match="There is no agent 'eve'"):
        none.get("eve")
    ledger.trust_items(brings, find_trust_items(brings))
    assert keep_trusted_agents(found, brings, ledger.make_trust_check(brings)) == found


def test_a_persons_own_agent_needs_no_yes_and_takes_nobodys_place(brings: Path, config: Path, tmp_path: Path) -> None:
    written(config / "agents" / "mine.md", "---\ndescription: Mine.\n---\nx")
    written(config / "agents" / "bob.md", "---\ndescription: My own bob.\n---\nx")
    usable = keep_trusted_agents(
        find_agents(brings), brings, TrustStore(tmp_path / "trust.json").make_trust_check(brings)
    )
    assert usable.names == ("mine",), "a project's bob stands before mine, so mine does not answer in its place"


def test_an_agents_file_that_cannot_be_read_is_named_if_it_is_the_projects(brings: Path, config: Path) -> None:
    written(brings / ".greenroom" / "agents" / "bad.md", "---\ntools: {\n---\n")
    written(brings / ".claude" / "agents" / "bob.md", CLAUDES)
    written(config / "agents" / "worse.md", "---\ntools: {\n---\n")
    told = " ".join(find_troubles(brings))
    assert "bad.md" in told
    assert "'ann', and so does" in told, "two that are one agent are none"
    assert "worse.md" not in told
