"""The ladder of a conflict: strategies, thresholds, dropped lines, and what is recorded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.core.base.errors import ModelFault, WorldFault, translate
from greenroom.core.base.records import evolve, to_full_dict
from greenroom.teamwork import conflicts
from greenroom.teamwork.conflicts import (
    ConflictedFile,
    ConflictRung,
    ConflictSide,
    FileMerge,
    apply_settled,
    can_ask_model,
    choose_next,
    cut_known,
    fill_stretches,
    find_dropped_lines,
    has_markers,
    pick_stretches,
    propose_by_model,
    read_conflicts,
    resolve_file,
    settle_by_person,
)
from greenroom.teamwork.ladder import settle_files
from greenroom.teamwork.merging.merge import Merge, Resolution, merge_file
from greenroom.teamwork.plan import TeamSettings

LADDER = TeamSettings()
TAX = ConflictSide(subtask="tax", agent="code-writer-1", priority=1, handed_in=10)
TIP = ConflictSide(subtask="tip", agent="code-writer-2", priority=2, handed_in=20)
BASE = "def price():\n    rate = 1\n    return rate\n\n\ndef name():\n    return 'shop'\n"
LEFT = BASE.replace("rate = 1", "rate = 2")
CLASH = ConflictedFile(
    path="shop.py",
    base=BASE.encode(),
    left=LEFT.encode(),
    right=BASE.replace("rate = 1", "rate = 3").replace("'shop'", "'store'").encode(),
)
LISTS = ConflictedFile(path=".gitignore", base=b"a\n", left=b"a\nb\n", right=b"a\nc\n")
PICTURE = ConflictedFile(path="logo.png", base=b"\0a", left=b"\0b", right=b"\0c")
GONE = ConflictedFile(path="shop.py", base=b"a\n", left=None, right=b"b\n")
lines = st.lists(st.sampled_from(["a", "b", " b", "}", "", "  ", "x = 1", "import os"]), max_size=6).map("\n".join)


def resolve(file: ConflictedFile, **settings: object) -> FileMerge:
    """Resolve a file of `tax`, which is merged, and `tip`."""
    return resolve_file(file, TAX, TIP, evolve(LADDER, **settings))


# ------------------------------------------------------------------------------------------------------- the stretches


@given(base=lines, left=lines, right=lines, result=lines)
def test_a_result_that_passes_has_every_line_that_a_side_added(base: str, left: str, right: str, result: str) -> None:
    dropped = find_dropped_lines(base, left, right, result)
    before, found = ({line.strip() for line in text.splitlines()} for text in (base, result))
    for line in (*left.splitlines(), *right.splitlines()):
        if line.strip() and line.strip() not in before | set(dropped):
            assert line.strip() in found


@given(base=lines, side=lines)
def test_the_only_change_drops_nothing(base: str, side: str) -> None:
    assert find_dropped_lines(base, side, base, side) == ()
    assert find_dropped_lines(base, base, side, side) == ()
    assert find_dropped_lines(base, side, side, side) == ()


@pytest.mark.parametrize(
    ("left", "right", "result", "dropped"),
    [
        ("a\nb", "a\nc", "a\nb\nc", ()),
        ("a\nb", "a\nc", "a\nb", ("c",)),
        ("a\na", "", "a", ()),  # one side added a line, the other one removed it
        ("a\na", "a", "a", ("a",)),  # the second one was added
        ("a\nimport os", "a\nimport os", "a\nimport os", ()),  # both added the same
        ("a\n    b", "a", "a\nb", ()),  # indentation does not count
        ("a\n\n", "a", "a", ()),
        ("a\nb", "a\nc", "b\nc", ("a",)),  # both kept it
        ("b", "a\nc", "b\nc", ()),  # one side removed it
    ],
)
def test_dropped_lines_are_counted(left: str, right: str, result: str, dropped: tuple[str, ...]) -> None:
    assert find_dropped_lines("a", left, right, result) == dropped


def test_only_the_stretches_that_conflict_are_filled() -> None:
    merge = merge_file("shop.py", CLASH.base or b"", CLASH.left or b"", CLASH.right or b"")
    known, rest = cut_known(merge)
    assert (known, merge.conflicts[0].left) == ("def price():\n", "    rate = 2\n")
    assert rest == "    return rate\n\n\ndef name():\n    return 'store'\n", (
        "the other change of the right side is kept"
    )
    assert fill_stretches(merge, ["    rate = 5"]) == f"{known}    rate = 5\n{rest}", "a line is ended"
    assert pick_stretches(merge, "left") == BASE.replace("rate = 1", "rate = 2").replace("'shop'", "'store'")
    assert pick_stretches(merge, "right") == (CLASH.right or b"").decode()


@given(base=lines, left=lines, right=lines)
def test_a_side_that_has_every_stretch_leaves_no_marker(base: str, left: str, right: str) -> None:
    merge = merge_file("a.txt", *(text.encode() for text in (base, left, right)))
    assert not has_markers(pick_stretches(merge, "left"))


def test_code_that_refuses_its_own_merge_leaves_the_stretches_of_git() -> None:
    keep = "".join(f"def keep{number}():\n    return {number}\n\n\n" for number in range(30))
    base = f"first(aaaa, bbbb, cccc)\n{keep}second(aaaa, bbbb, cccc)\n"
    left, right = base.replace("aaaa", "aaaa1").replace("return 7\n", "return 70\n"), base.replace("cccc", "cccc1")
    file = ConflictedFile(path="m.py", base=base.encode(), left=left.encode(), right=right.encode())
    (refused,) = merge_file("m.py", *(text.encode() for text in (base, left, right))).conflicts
    assert refused.left == left, "all of the file"
    merged = resolve(file, accept_model_merges=True)
    merge = merged.by_code
    assert merge is not None
    assert [stretch.base.count("\n") for stretch in merge.conflicts] == [1, 1]
    assert {stretch.why for stretch in merge.conflicts} == {"the sides changed the same lines in several places"}
    later = resolve(file, conflict_strategy="timestamp")
    assert later.content == right.replace("return 7\n", "return 70\n").encode(), (
        "the other changes of the losing side are kept"
    )


def test_a_file_is_merged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = list[str]()

    def count(path: str, *versions: bytes) -> Merge:
        runs.append(path)
        return merge_file(path, *versions)

    monkeypatch.setattr(conflicts, "merge_file", count)
    merged = resolve(ConflictedFile(path="once.py", base=b"a\n", left=b"b\n", right=b"c\n"))
    assert merged.by_code is merged.by_code
    assert runs == ["once.py"]


# ---------------------------------------------------------------------------------------------------------- strategies


@pytest.mark.parametrize(
    ("file", "strategy", "state", "rung", "has_content"),
    [
        (LISTS, "merge", "resolved", "structure", True),
        (LISTS, "timestamp", "resolved", "structure", True),
        (LISTS, "human", "proposed", "structure", True),
        (LISTS, "coin", "proposed", "structure", True),
        (CLASH, "merge", "open", "git", False),
        (CLASH, "human", "open", "git", False),
        (CLASH, "coin", "open", "git", False),
        (CLASH, "timestamp", "resolved", "strategy", True),
        (CLASH, "priority", "resolved", "strategy", True),
        (PICTURE, "merge", "open", "git", False),
        (PICTURE, "priority", "resolved", "strategy", True),
        (GONE, "merge", "open", "git", False),
    ],
)
def test_a_strategy_decides_how_far_code_goes(
    file: ConflictedFile, strategy: str, state: str, rung: str, has_content: bool
) -> None:
    merged = resolve(file, conflict_strategy=strategy)
    assert (merged.record.state, merged.record.rung) == (state, rung)
    assert (merged.content is not None) is has_content
    assert merged.record.strategy == strategy


def test_the_later_side_wins_by_timestamp_and_the_lower_number_by_priority() -> None:
    later = resolve(CLASH, conflict_strategy="timestamp")
    assert later.content == CLASH.right
    assert later.record.dropped_lines == ("rate = 2",), "what the strategy drops is recorded"
    urgent = resolve(CLASH, conflict_strategy="priority")
    assert urgent.content is not None
    assert b"rate = 2" in urgent.content
    assert b"'store'" in urgent.content, "only the stretch is taken"
    earlier = resolve_file(CLASH, evolve(TAX, handed_in=30), TIP, evolve(LADDER, conflict_strategy="timestamp"))
    assert earlier.content is not None
    assert b"rate = 2" in earlier.content
    equal = resolve_file(CLASH, TAX, evolve(TIP, priority=1), evolve(LADDER, conflict_strategy="priority"))
    assert equal.record.state == "open"
    assert can_ask_model(equal), "with equal priorities the ladder goes on"
    removed = resolve(GONE, conflict_strategy="priority")
    assert (removed.record.state, removed.content) == ("resolved", None), "the file stays removed"


@pytest.mark.req("RC-155")
def test_a_threshold_above_the_measured_confidence_makes_a_proposal() -> None:
    sure, unsure = (resolve(LISTS, auto_resolve_threshold=least) for least in (0.4, 1.0))
    assert (sure.record.state, unsure.record.state) == ("resolved", "proposed")
    assert sure.content == unsure.content
    assert 0.4 <= (sure.record.confidence or 0) < 1
    assert not can_ask_model(unsure), "a model is not surer than code"


@pytest.mark.parametrize(
    ("base", "left", "right", "text"),
    [
        ("call(a, b, c)\n", "call(a1, b, c)\n", "call(a, b, c1)\n", b"call(a1, b, c1)\n"),
        ("f(a, b)\n", "f(\n  a,\n  b)\n", "f(a, c)\n", b"f(a, c)\n"),
    ],
)
def test_what_code_only_formats_or_joins_is_not_dropped(base: str, left: str, right: str, text: bytes) -> None:
    versions = (version.encode() for version in (base, left, right))
    file = ConflictedFile(**dict(zip(("base", "left", "right"), versions, strict=True)), path="m.js")
    merged = resolve(file, auto_resolve_threshold=0.5)
    assert (merged.content, merged.record.state, merged.record.dropped_lines) == (text, "resolved", ())
    accepted = settle_by_person(resolve(file), "accept")
    assert (accepted.record.state, accepted.record.dropped_lines) == ("resolved", ())


def test_code_that_drops_a_line_is_a_proposal_at_any_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        conflicts, "merge_file", lambda *_: Merge("a\nb\n", (Resolution("structure", "both sides added entries", 0.9),))
    )
    merged = resolve(evolve(LISTS, path="lost.txt"), auto_resolve_threshold=0.0)
    assert (merged.record.state, merged.record.dropped_lines) == ("proposed", ("c",))


# ----------------------------------------------------------------------------------------------------- model and person


@pytest.mark.parametrize(
    ("stretch", "accepts", "state", "dropped"),
    [
        ("    rate = 2\n    rate = 3\n", True, "resolved", ()),
        ("    rate = 2\n    rate = 3\n", False, "proposed", ()),
        ("    rate = 3\n", True, "proposed", ("rate = 2",)),
        ("    rate = (2, 3\n", True, "proposed", ("rate = 2", "rate = 3")),
    ],
)
def test_a_model_proposes_and_a_setting_accepts(
    stretch: str, accepts: bool, state: str, dropped: tuple[str, ...]
) -> None:
    settings = evolve(LADDER, accept_model_merges=accepts, auto_resolve_threshold=0.0)
    merged = propose_by_model(resolve(CLASH), [stretch], "both rates", settings)
    assert (merged.record.state, merged.record.dropped_lines) == (state, dropped)
    assert (merged.record.rung, merged.record.confidence) == ("model", None), "unmeasured, below every threshold"
    assert merged.content is not None
    assert b"'store'" in merged.content


def test_a_proposal_that_does_not_parse_goes_to_a_person() -> None:
    base, left, right = (f'{{\n"a": {number}\n}}\n'.encode() for number in (1, 2, 3))
    file = ConflictedFile(path="a.json", base=base, left=left, right=right)
    settings = evolve(LADDER, accept_model_merges=True)
    merged = propose_by_model(resolve(file), ['"a": 2\n"a": 3\n'], "both", settings)
    assert (merged.record.state, merged.record.dropped_lines) == ("proposed", ())
    assert "conflicts.broken" in merged.record.why or "does not parse" in merged.record.why


@pytest.mark.parametrize("stretches", [(), ("a", "b"), ("<<<<<<< left\n",)])
def test_an_answer_that_does_not_fit_is_told_to_the_model(stretches: tuple[str, ...]) -> None:
    with pytest.raises(ModelFault, match=r"shop\.py"):
        propose_by_model(resolve(CLASH), stretches, "", LADDER)


def test_a_text_that_lacks_what_both_sides_kept_drops_it() -> None:
    merged = settle_by_person(resolve(CLASH), "", "    rate = 2\n    rate = 3\n    return 'store'\n")
    assert merged.record.dropped_lines == ("def price():", "return rate", "def name():")


def pick_left(file: ConflictedFile) -> bytes:
    """Return a file in which the left side has each stretch that conflicts."""
    merge = resolve(file).by_code
    assert merge is not None
    return pick_stretches(merge, "left").encode()


def settle(content: bytes | None, rung: ConflictRung = "person", file: ConflictedFile = CLASH) -> FileMerge:
    """Return a conflict with this resolution."""
    merged = resolve(file)
    return evolve(merged, record=evolve(merged.record, rung=rung, state="resolved"), content=content)


def test_a_resolution_is_used_while_the_same_stretches_conflict() -> None:
    settled = settle(pick_left(CLASH))
    assert apply_settled(resolve(CLASH), settled) == settled
    moved = evolve(CLASH, left=f"import os\n\n{LEFT}".encode())
    done = apply_settled(resolve(moved), settled)
    assert done.content == f"import os\n\n{BASE}".replace("rate = 1", "rate = 2").replace("'shop'", "'store'").encode()
    assert (done.record.state, done.record.digest, done.record.dropped_lines) == (
        "resolved",
        moved.digest,
        ("rate = 3",),
    )
    by_model = apply_settled(resolve(moved), settle(settled.content, "model"))
    assert by_model.record.state == "open", "a line that is dropped is for a person"


def test_a_resolution_is_void_for_another_conflict() -> None:
    left = pick_left(CLASH)
    other = evolve(CLASH, left=BASE.replace("rate = 1", "rate = 4").encode())
    assert apply_settled(resolve(other), settle(left)).record.state == "open"
    moved = evolve(CLASH, left=f"import os\n\n{LEFT}".encode())
    assert apply_settled(resolve(moved), settle(b"all = 'new'\n")).record.state == "open", "a whole text of a person"
    assert apply_settled(resolve(moved), settle(None)).record.state == "open"
    empty, missing = evolve(GONE, left=b""), evolve(GONE, left=None)
    assert empty.digest != missing.digest
    assert apply_settled(resolve(missing), settle(b"b\n", file=empty)).record.state == "open"


@pytest.mark.parametrize(
    ("files", "settings", "following"),
    [
        ((LISTS,), {}, "done"),
        ((LISTS, CLASH), {}, "model"),
        ((CLASH,), {"conflict_strategy": "human"}, "person"),
        ((PICTURE,), {}, "person"),
        ((PICTURE, CLASH), {}, "model"),
        ((LISTS,), {"auto_resolve_threshold": 1.0}, "person"),
        ((CLASH,), {"fallback_to_human": False}, "fail"),
        ((CLASH,), {"fallback_to_human": False, "accept_model_merges": True}, "model"),
        ((PICTURE, CLASH), {"fallback_to_human": False, "accept_model_merges": True}, "fail"),
        ((CLASH,), {"conflict_strategy": "human", "fallback_to_human": False}, "fail"),
    ],
)
def test_what_code_leaves_goes_up_the_ladder(
    files: tuple[ConflictedFile, ...], settings: dict[str, object], following: str
) -> None:
    assert choose_next([resolve(file, **settings) for file in files], evolve(LADDER, **settings)) == following


def test_a_person_names_a_subtask_and_gets_its_side_in_each_file() -> None:
    api, docs, new = (evolve(TAX, subtask=name) for name in ("api", "Docs", "new"))
    settings = evolve(LADDER, conflict_strategy="human")
    files = [evolve(CLASH, path=path) for path in ("a.py", "b.py", "c.py")]
    pairs = ((api, new), (new, api), (evolve(api, subtask="API"), evolve(new, subtask="api")))
    merged = [resolve_file(file, *pair, settings) for file, pair in zip(files, pairs, strict=True)]
    sides = [b"rate = 2", b"rate = 3", b"rate = 3"]
    assert [side in (part.content or b"") for part, side in zip(settle_files(merged, "api"), sides, strict=True)] == [
        True
    ] * 3
    other = resolve_file(files[0], docs, new, settings)
    assert b"rate = 2" in (settle_files([other], "Docs")[0].content or b"")
    with pytest.raises(WorldFault):
        settle_files([merged[0], other], "Docs")


def test_what_a_person_writes_is_not_the_reason() -> None:
    (done,) = settle_files([resolve(CLASH)], '{"texts": {"shop.py": "SECRET"}}')
    assert (done.record.why, done.content) == (translate("conflicts.written"), b"SECRET")
    with pytest.raises(WorldFault, match=r"'' is not possible|no_choice"):
        settle_files([resolve(CLASH)], '{"texts": {"other.py": "SECRET"}}')


def test_what_goes_back_to_its_author_has_both_versions_although_a_merge_was_proposed() -> None:
    merged = propose_by_model(resolve(CLASH), ["    rate = 3\n"], "the later one", LADDER)
    assert (merged.record.state, has_markers((merged.draft or b"").decode())) == ("proposed", True)


# --------------------------------------------------------------------------------------------------------- the records


@pytest.mark.req("RC-87", "RC-88")
def test_a_conflict_names_its_sides_and_how_it_was_resolved() -> None:
    merged = resolve(LISTS)
    fields = to_full_dict(merged.record)
    assert {"type", "involved_agents", "description", "severity", "original", "versions"} <= set(fields)
    assert (fields["type"], fields["severity"]) == ("file-modification", "low")
    assert fields["involved_agents"] == ("code-writer-1", "code-writer-2")
    done, left = merged.record, resolve(CLASH).record
    assert (done.state, done.strategy, done.requires_human_review) == ("resolved", "merge", False)
    assert done.message == translate("conflicts.is_resolved", path=".gitignore", why="both sides added entries")
    assert (left.state, left.requires_human_review) == ("open", True)
    assert [resolve(file).record.severity for file in (CLASH, PICTURE, GONE)] == ["medium", "high", "high"]


@pytest.mark.req("RC-81")
def test_a_conflict_of_an_unknown_type_is_an_error() -> None:
    known = to_full_dict(resolve(CLASH).record)
    assert read_conflicts([known]) == (resolve(CLASH).record,)
    assert read_conflicts(None) == ()
    for kind in ("api-inconsistency", "naming-conflict"):
        assert read_conflicts([{**known, "type": kind}])[0].type == kind
    with pytest.raises(WorldFault, match=r"unreadable|cannot be read"):
        read_conflicts([{**known, "type": "weather"}])


def test_a_lower_version_gives_way_and_is_named() -> None:
    texts = [f'version = "{number}"\n'.encode() for number in ("1.0", "1.1", "1.2")]
    merged = resolve(ConflictedFile(path="pyproject.toml", base=texts[0], left=texts[1], right=texts[2]))
    assert (merged.record.state, merged.content) == ("resolved", texts[2])
    assert merged.record.dropped_lines == ('version = "1.1"',)
