"""Who takes part in a talk."""

from collections.abc import Mapping

from greenroom.app.conversation.start import ASSISTANT, cast_of
from greenroom.core.state.spec import AgentSpec


def settled(name: str) -> str:
    return {"": "p:normal", "fast": "p:small"}.get(name, name)


OTHERS: Mapping[str, AgentSpec] = {
    "ben": AgentSpec(name="ben", calls=("ann", "cleo"), llm_config={"model": "fast"}),
    "cleo": AgentSpec(name="cleo", tools=("look",), groups=("read",), language="zh"),
}


def test_the_assistant_is_alone_and_asks_the_normal_model() -> None:
    cast = cast_of(ASSISTANT, OTHERS, settled)
    assert (cast.first, cast.models, cast.missing) == ("assistant", ("p:normal",), ())


def test_an_agent_brings_those_it_calls_and_who_is_missing_is_said() -> None:
    ann = AgentSpec(name="ann", calls=("ben", "dora"), llm_config={"temperature": 0.5})
    cast = cast_of(ann, OTHERS, settled, model="p:large", language="en")
    specs = dict(cast.members)
    assert [name for name, _ in cast.members] == ["ann", "ben", "cleo"]
    assert cast.models == ("p:large", "p:small")
    assert cast.missing == ("dora",)
    assert specs[cast.first].llm_config == {"temperature": 0.5, "model": "p:large"}
    assert [spec.language for spec in specs.values()] == ["en", "en", "zh"]


def test_without_tools_nobody_has_any() -> None:
    cast = cast_of(OTHERS["cleo"], {}, settled, tools=False)
    ((_, spec),) = cast.members
    assert (spec.tools, spec.groups) == ((), ())
