"""People who come together the first time found one organisation: real processes, one log, all at the same moment."""

import asyncio
from pathlib import Path

import pytest

from greenroom.app.organisation.creation import list_organisations
from greenroom.app.runtime import Runtime
from tests.crash.arrivals import together

TOGETHER = 8


async def there(home: Path) -> list[str]:
    runtime = await Runtime.open(home)
    try:
        return [team async for team, _ in list_organisations(runtime)]
    finally:
        await runtime.close()


@pytest.mark.parametrize("dead", [0, 3], ids=["all live", "three are killed"])
def test_eight_who_come_at_once_found_one_organisation_also_when_some_are_killed_in_between(
    tmp_path: Path, dead: int
) -> None:
    asyncio.run(there(tmp_path))
    codes = together(tmp_path, [number < dead for number in range(TOGETHER)])
    assert codes[dead:] == [0] * (TOGETHER - dead)
    (team,) = asyncio.run(there(tmp_path))
    assert {one.read_text("utf-8") for one in tmp_path.glob("*.found")} == {team}
