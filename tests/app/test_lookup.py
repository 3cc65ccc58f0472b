from pathlib import Path

import pytest

from greenroom.app.lookup import TaskReference, find_short_ids, pick_team, resolve_id
from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import RefusedError
from greenroom.core.base.ids import TaskId, TeamId
from greenroom.testing.demo import AGENTS, TASK

TEAMS = [TeamId(name) for name in ("abcd", "abxy", "k3f9", "zz22")]


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("ab", "ambiguous_id", "abxy, abcd"),
        ("q", "unknown_id", "The newest: zz22, k3f9, abxy, abcd."),
        ("", "unknown_id", "There is no team ''"),
        ("K", "unknown_id", "There is no team 'K'"),
    ],
)
def test_what_names_no_team_alone_is_refused_with_what_there_is(text: str, code: str, words: str) -> None:
    with pytest.raises(RefusedError) as refused:
        pick_team(TEAMS, text)
    assert refused.value.rejection.code == code
    assert words in str(refused.value)


def test_a_long_list_is_cut() -> None:
    many = [TeamId(f"a{number}") for number in range(30)]
    with pytest.raises(RefusedError, match="a29, a28, a27, a26, a25 and 25 more"):
        pick_team(many, "a")


def test_where_nothing_ran_the_command_to_start_is_named() -> None:
    with pytest.raises(RefusedError, match="greenroom run"):
        pick_team([], "last")


def test_the_shortest_beginnings_name_each_team_alone() -> None:
    short = find_short_ids([*TEAMS, TeamId("k3f2")])
    assert short == {"abcd": "abc", "abxy": "abx", "k3f9": "k3f9", "k3f2": "k3f2", "zz22": "zz2"}
    assert find_short_ids([TeamId("abcd")]) == {"abcd": "abc"}


async def test_a_task_is_named_behind_its_team(tmp_path: Path) -> None:
    runtime = await Runtime.open(tmp_path)
    try:
        team = await runtime.create("tea", AGENTS)
        await runtime.ask(team, TASK)
        assert await resolve_id(runtime, "last/t1") == TaskReference(team=team, task=TaskId("t1"))
        assert str(await resolve_id(runtime, f"{team[:4]}/t1")) == f"{team}/t1"
        assert str(await resolve_id(runtime, " last ")) == team
        with pytest.raises(RefusedError, match=r"has no task 't2'. Its tasks: t1"):
            await resolve_id(runtime, "last/t2")
    finally:
        await runtime.close()
