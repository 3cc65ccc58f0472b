"""Which memories are meant."""

import pytest

from greenroom.core.base.ids import MemoryId
from greenroom.core.ports.recall import Wanted
from greenroom.core.state.knowledge import Memory

ONE = Memory(
    memory_id=MemoryId("20251101_072947_388226"),
    type="short_term",
    content="Die API ist langsam. 接口很慢",
    created_at=1,
    tags=("API", "search"),
)


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        (Wanted(), True),
        (Wanted(tags=("api",)), True),
        (Wanted(tags=("web", "Search")), True),
        (Wanted(tags=("ap",)), False),
        (Wanted(words=("LANGSAM", "api")), True),
        (Wanted(words=("接口",)), True),
        (Wanted(words=("search",)), True),
        (Wanted(words=("langsam", "schnell")), False),
        (Wanted(ids=(ONE.memory_id,)), True),
        (Wanted(ids=(MemoryId("x"),)), False),
        (Wanted(ids=(ONE.memory_id,), tags=("web",)), False),
    ],
)
def test_tags_words_and_ids_narrow_it_down(wanted: Wanted, fits: bool) -> None:
    assert wanted.fits(ONE) is fits
