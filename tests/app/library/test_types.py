"""What type checkers infer of an agent's answer: mypy reads this file in `./go check`, and the test runs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, assert_type

import pytest
from pydantic import BaseModel, Field

from greenroom import Agent, Greenroom
from greenroom.core.base.records import encode
from tests.abilities.skills.talks import Played, says


@dataclass
class Fact:
    city: str


@dataclass
class Refusal:
    reason: str


class Town(BaseModel):
    name: str


def answering(value: object) -> Played:
    """A model that answers with a value in JSON."""
    return Played(lambda _: says(encode(value).decode()))


async def test_the_answer_has_the_type_of_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "ann.md"
    file.write_text("---\nname: ann\n---\nAnswer.")
    fact, model = {"city": "Rome"}, answering({"city": "Rome"})
    text = Played(lambda _: says("Rome."))
    async with Greenroom(in_memory=True) as house:
        assert_type((await house.run(Agent("ann", model=text), "Where?")).output, str)
        assert_type((await house.run(Agent("ann", output_type=str, model=text), "Where?")).output, str)
        assert_type((await house.run(Agent.from_file(file, model=text), "Where?")).output, str)
        union = await house.run(Agent("ann", output_type=Fact | Refusal, model=model), "Where?")
        assert_type(union.output, Fact | Refusal)
        of_file = await house.run(Agent.from_file(file, output_type=Fact | Refusal, model=model), "Where?")
        assert_type(of_file.output, Fact | Refusal)
        one = await house.run(Agent("ann", output_type=Fact, model=model), "Where?")
        assert_type(one.output, Fact)
        model_or_text = await house.run(
            Agent("ann", output_type=Town | str, model=answering({"name": "Rome"})), "Where?"
        )
        assert_type(model_or_text.output, Town | str)
        several = await house.run(Agent("ann", output_type=list[Fact], model=answering([fact])), "Where?")
        assert_type(several.output, list[Fact])
        optional = await house.run(Agent("ann", output_type=Fact | None, model=model), "Where?")
        assert_type(optional.output, Fact | None)
        number = await house.run(Agent("ann", output_type=Annotated[int, Field(gt=3)], model=answering(4)), "How many?")
        assert_type(number.output, int)
    found: list[Any] = [union.output, of_file.output, one.output, optional.output]
    assert found == [Fact("Rome")] * 4
    assert (model_or_text.output, several.output, number.output) == (Town(name="Rome"), [Fact("Rome")], 4)
