"""Every key goes where the table says, under each of its names; what cannot be used is said, with its line."""

from __future__ import annotations

import pytest

from greenroom.app.agents.specs import FOREIGN_KEYS, OWN_KEYS, REFUSED_KEYS, parse_spec
from greenroom.core.base.records import to_full_dict
from greenroom.core.state.spec import AgentSpec, Cooperation, Handoff, History, PlanPolicy, TurnPolicy
from tests.app.agents.folders import Folders

ALL = """\
name: ann
role: a reviewer
profile: Careful.
description: Reviews changes.
model: strong
temperature: 0.2
max_output: 8000
effort: high
streaming: false
tools: [read_file, search]
calls: [bob]
groups: [read, web]
permissions: [deny command git  push, ask path src/** write]
style: plan
manager: true
skills: [think, ask_info]
capabilities: [reading]
protocols: [tool_call, patch]
several: first
ends: mark
auto_complete: true
rounds: 20
repairs: 1
summary_rounds: 30
summary_prompt: Sum it up.
need_summary: true
retrospective: true
force_save_memory: true
plan: true
plan_max_depth: 3
plan_max_steps: 5
language: zh
answer: {type: object, properties: {ok: {type: boolean}}}
use_skills: false
files: [a.md]
cooperation:
  concurrency: 2
  seconds: 5m
  success: 92
  cooperates: false
  partners: [bob]
  protocol: review-feedback
summary_on_send: false
handoff_summary_prompt: Name the risks.
clear_after_send_message: true
clear_after_tokens: 8000
clear_after_turns: 10
"""


def test_every_key_of_ours_goes_into_the_spec(folders: Folders) -> None:
    spec = folders.agent(ALL, "Look at the tests first.")
    assert spec == AgentSpec(
        name="ann",
        role="a reviewer",
        profile="Careful.",
        description="Reviews changes.",
        prompt="Look at the tests first.",
        tools=("read_file", "search"),
        calls=("bob",),
        groups=("read", "web"),
        rules=("deny command git push", "ask path src/** write"),
        style="plan",
        manager=True,
        skills=("think", "ask_info"),
        capabilities=("reading",),
        answer={"type": "object", "properties": {"ok": {"type": "boolean"}}},
        turn=TurnPolicy(
            protocols=("tool_call", "patch"), several="first", ends="mark", auto_complete=True, rounds=20, repairs=1
        ),
        history=History(
            summary_rounds=30,
            summary_prompt="Sum it up.",
            need_summary=True,
            retrospective=True,
            force_save_memory=True,
        ),
        planner=PlanPolicy(enabled=True, max_depth=3, max_steps=5),
        cooperation=Cooperation(
            concurrency=2, seconds=300, success=92, cooperates=False, partners=("bob",), protocol="review-feedback"
        ),
        handoff=Handoff(summary=False, summary_prompt="Name the risks.", clear=True, clear_tokens=8000, clear_turns=10),
        language="zh",
        llm_config={"effort": "high", "max_output": 8000, "model": "strong", "streaming": False, "temperature": 0.2},
        use_skills=False,
        files=("a.md",),
        version=spec.version,
    )
    assert {key.partition(".")[0] for key in OWN_KEYS} == {
        line.partition(":")[0] for line in ALL.splitlines() if line[0] > " "
    } | {"prompt"}


def test_every_field_of_a_spec_is_in_the_table() -> None:
    named = {goes.path[0] for goes in OWN_KEYS.values()} | REFUSED_KEYS.keys()
    assert set(to_full_dict(AgentSpec(name="x"))) <= named


@pytest.mark.parametrize(
    ("front", "said"),
    [
        ("temprature: 1", ", line 2: `temprature` is not a key of an agent. Did you mean `temperature`?"),
        ("name: x\n\nModell: y", ", line 4: `Modell` is not a key of an agent. Did you mean `model`?"),
        ("zzzzz: 1", ", line 2: `zzzzz` is not a key of an agent. There are: `name`, `role`, `profile`, `description`"),
        ("cooperation:\n  patners: [a]", ", line 3: `cooperation.patners` is not a key of an agent. Did you mean"),
        (
            "cooperation:\n  protocol: code-handof",
            ", line 3: `cooperation.protocol` must be one of 'design-handoff', 'code-handoff', ",
        ),
        ("cooperation: 3", ", line 2: `cooperation` is a table. Write `concurrency`, `seconds`,"),
        ("temperature: 3", ", line 2: `temperature` must be a number from 0 to 2, not 3."),
        ("temperature: hot", ", line 2: `temperature` must be a number from 0 to 2, not 'hot'."),
        ("max_output: 0", ", line 2: `max_output` must be a whole number, at least 1, not 0."),
        ("max_output: 1.5", ", line 2: `max_output` must be a whole number, at least 1, not 1.5."),
        ("effort: most", ", line 2: `effort` must be one of 'low', 'medium', 'high', not 'most'."),
        ("streaming: yes", ", line 2: `streaming` must be true or false, not 'yes'."),
        ("tools: 3", ', line 2: `tools` must be a list of names, like ["one", "two"], not 3.'),
        ("tools: [3]", ', line 2: `tools` must be a list of names, like ["one", "two"], not [3].'),
        (
            "groups: [reed]",
            ", line 2: `groups` must be a list of some of read, edit, command, browser, web, mcp, memory",
        ),
        ("permissions: 3", ", line 2: `permissions` must be a list of rules, like [deny command git push], not 3."),
        ("permissions: [never push]", ", line 2: `permissions` must be a list of rules. The rule 'never push' begins"),
        ("permissions: allow command rm", ", line 2: `permissions` must be a list of rules that ask or deny; an"),
        ("rounds: -1", ", line 2: `rounds` must be a whole number from 0 to 1000000, not -1."),
        ("rounds: true", ", line 2: `rounds` must be a whole number from 0 to 1000000, not True."),
        ("repairs: 99", ", line 2: `repairs` must be a whole number from 0 to 10, not 99."),
        ("model: https://evil.example/v1", ", line 2: `model` must be a role, a group or provider:model"),
        ("model:", ", line 2: `model` is empty. Give it a value, or delete the line."),
        ("name: a b", ", line 2: `name` must be a name of up to 64 letters, digits, - _ and ., like code-reviewer"),
        ("name: system", ", line 2: `name` must be another name: this one is reserved"),
        ("role: ''", ", line 2: `role` must be a non-empty text of one line, not ''."),
        ("description: '  '", ", line 2: `description` must be a text that is not empty, not '  '."),
        ('description: "a\\e[2J"', ", line 2: `description` must be a text without invisible characters,"),
        (f"{'x' * 500}: 1", f", line 2: `{'x' * 60}…` is not a key of an agent. There are:"),
        ("answer: 3", ", line 2: `answer` must be a JSON Schema, like {type: object, properties: {…}}, not 3."),
        ("answer: {type: nothing}", ", line 2: `answer` must be a JSON Schema ("),
        ("successRate: 92", ", line 2: `successRate` must be a number from 0 to 1, like 0.92, not 92."),
        ("design: crew", ", line 2: `design` must be one of 'jarvis', 'artifactflow', 'roo', not 'crew'."),
        ("prompt: x", ", line 2: `prompt` and the text below the front matter are the same thing, the prompt. Keep"),
        ("tools: [a]\nuse_tools: [b]", ", line 3: `use_tools` and `tools` are two names for the same thing. Keep one"),
        ("max_output: 1\nmaxOutput: 2", ", line 3: `maxOutput` and `max_output` are two names for the same thing."),
        ("cooperation:\n  success: 9\nsuccessRate: 0.9", ", line 4: `successRate` and `cooperation.success` are two"),
    ],
)
def test_what_cannot_be_used_is_said_with_its_line(folders: Folders, front: str, said: str) -> None:
    assert folders.trouble(front).startswith(said)


@pytest.mark.parametrize("key", sorted(REFUSED_KEYS))
def test_what_has_no_place_here_is_never_silently_left_out(folders: Folders, key: str) -> None:
    said = folders.trouble(f"{key}: sk-secret-1234")
    assert said.startswith(f", line 2: `{key}` ")
    assert said.endswith(".")
    assert "sk-secret" not in said


@pytest.mark.parametrize("key", sorted({*OWN_KEYS, *FOREIGN_KEYS} - {"name"}))
def test_a_value_that_cannot_be_is_never_taken(folders: Folders, key: str) -> None:
    table, _, inner = key.rpartition(".")
    front = f"{table}:\n  {inner}: [[]]" if table else f"{key}: [[]]"
    assert f"`{key}` must be " in folders.trouble(front, "")


@pytest.mark.req("AF-13")
def test_agents_share_nothing_that_one_of_them_could_change() -> None:
    for field in to_full_dict(parse_spec({"name": "a"})):
        one = parse_spec({"name": "a"})
        assert not isinstance(getattr(one, field), list | dict | set)
        with pytest.raises(AttributeError):
            setattr(one, field, ("x",))
