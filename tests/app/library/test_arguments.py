"""Arguments that do not exist: the error names the public class and the right argument."""

from collections.abc import Callable

import pytest

from greenroom import Agent, Greenroom, GreenroomError, ModelFault, OutputError


@pytest.mark.parametrize(
    ("old", "new"),
    [("prompt", "instructions"), ("repairs", "output_retries"), ("rounds", "max_turns"), ("groups", "toolsets")],
)
def test_an_old_argument_of_an_agent_names_the_new_one(old: str, new: str) -> None:
    make_agent: Callable[..., object] = Agent
    with pytest.raises(TypeError, match=rf"^Agent\(\) has no argument `{old}`\. Use `{new}`\.$"):
        make_agent("a", **{old: 1})


def test_an_old_argument_of_a_greenroom_names_the_new_one() -> None:
    make_greenroom: Callable[..., object] = Greenroom
    list_runs: Callable[..., object] = Greenroom(in_memory=True).runs
    with pytest.raises(TypeError, match=r"^Greenroom\(\) has no argument `memory`\. Use `in_memory`\.$"):
        make_greenroom(memory=True)
    with pytest.raises(TypeError, match=r"^Greenroom.runs\(\) has no argument `most`\. Use `limit`\.$"):
        list_runs(most=1)


def test_a_misspelt_argument_names_the_nearest_one() -> None:
    make_agent: Callable[..., object] = Agent
    with pytest.raises(TypeError, match=r"Did you mean `instructions`\?"):
        make_agent("a", instrutions="Be brief.")


def test_an_output_error_is_a_model_fault() -> None:
    assert issubclass(OutputError, ModelFault)
    assert issubclass(ModelFault, GreenroomError)
