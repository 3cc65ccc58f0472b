import pytest

from greenroom.adapters.models.platforms.base import fitted
from greenroom.core.ports.model import ModelCard

LONG = "".join(f"line {number}\n" for number in range(1000))


@pytest.mark.req("AG-187")
def test_a_long_message_is_a_file_first_and_cut_only_where_no_file_can_be_shown() -> None:
    small = ModelCard(window=1000)
    said, shown = fitted(LONG, ModelCard(window=1000, files=True))
    assert shown[0].data == LONG.encode()
    assert said.startswith("The whole message is in the file message.txt")
    cut, none = fitted(LONG, small)
    assert none == ()
    assert cut.startswith("line 0\n")
    assert cut.endswith("line 999\n")
    assert "characters are left out here" in cut
    assert len(cut) < 1600
    assert fitted("short", small) == ("short", ())
