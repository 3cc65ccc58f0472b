"""The conversation pool of a person: what was said in groups and privately, and what they were told by the house.

A view: made from the messages of the log, which nobody changes.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final

from greenroom.app.organisation.letters import waiting_of
from greenroom.app.organisation.notices import notices
from greenroom.core.base.ids import AgentId, GroupId
from greenroom.core.base.records import record
from greenroom.core.state.message import Message
from greenroom.core.state.portrait import Portrait
from greenroom.core.state.world import World

STAMP: Final = "%Y-%m-%d %H:%M:%S"


@record
class GroupWord:
    """Something that was said in a group."""

    sender_id: str
    content: str
    timestamp: str


@record
class GroupTalk:
    """A group of people, and what was said there."""

    group_id: str
    participants: tuple[str, ...]
    messages: tuple[GroupWord, ...] = ()


@record
class Private:
    """Something that was said between this person and another agent, by either of them."""

    sender_id: str
    content: str
    stage_relative: str
    timestamp: str
    need_reply: bool
    waiting: str | None
    return_waiting_id: str | None


@record
class Pool:
    """All of it. Private talks are by the other's id."""

    conversation_groups: tuple[GroupTalk, ...]
    conversation_privates: dict[str, tuple[Private, ...]]
    global_messages: tuple[str, ...]

    @property
    def portrait(self) -> Portrait:
        """The same as JSON can hold it."""
        return {
            "conversation_groups": [
                {
                    "group_id": one.group_id,
                    "participants": list(one.participants),
                    "messages": [{name: getattr(word, name) for name in GROUP_FIELDS} for word in one.messages],
                }
                for one in self.conversation_groups
            ],
            "conversation_privates": {
                name: [{field: getattr(one, field) for field in PRIVATE_FIELDS} for one in said]
                for name, said in self.conversation_privates.items()
            },
            "global_messages": list(self.global_messages),
        }


GROUP_FIELDS: Final = ("sender_id", "content", "timestamp")
PRIVATE_FIELDS: Final = (
    "sender_id",
    "content",
    "stage_relative",
    "timestamp",
    "need_reply",
    "waiting",
    "return_waiting_id",
)


def pool_of(world: World, messages: Iterable[Message], person: AgentId, language: str) -> Pool:
    """What this person knows of all these messages."""
    heard = [one for one in messages if one.sender_id == person or person in one.receiver]
    privates: dict[str, list[Private]] = {}
    for other, said in (pair for one in heard if one.group is None for pair in _private(one, person)):
        privates.setdefault(other, []).append(said)
    return Pool(
        conversation_groups=tuple(_groups(world, heard, person)),
        conversation_privates={other: tuple(said) for other, said in privates.items()},
        global_messages=tuple(told for one in heard for told in notices(one, person, language)),
    )


def stamp(at: int) -> str:
    """A moment as people read it, where they are."""
    return time.strftime(STAMP, time.localtime(at / 1000))


def _private(message: Message, person: AgentId) -> Iterator[tuple[str, Private]]:
    """The message as it stands in the talk with each other one. What somebody sends to several is in all of them."""
    if message.sender_id == person:
        others = [(one, one) for one in message.receiver if one != person]
    else:
        others = [(message.sender_id, person)]
    for other, receiver in others:
        entry = Private(
            sender_id=message.sender_id,
            content=message.message,
            stage_relative=message.stage_relative,
            timestamp=stamp(message.sent_at),
            need_reply=message.need_reply,
            waiting=waiting_of(message, receiver),
            return_waiting_id=message.return_waiting_id,
        )
        yield other, entry


def _groups(world: World, heard: Iterable[Message], person: AgentId) -> Iterator[GroupTalk]:
    """Those that the person takes part in, with what was said while they did; also those that are over."""
    joined = sorted(name for name, one in world.groups.items() if person in one.participants)
    said: dict[GroupId, list[Message]] = {name: [] for name in joined}
    for one in heard:
        if one.group is not None:
            said.setdefault(one.group, []).append(one)
    for name, words in said.items():
        yield GroupTalk(
            group_id=name,
            participants=_participants(world, name, words),
            messages=tuple(
                GroupWord(sender_id=one.sender_id, content=one.message, timestamp=stamp(one.sent_at)) for one in words
            ),
        )


def _participants(world: World, name: GroupId, words: list[Message]) -> tuple[str, ...]:
    """Who takes part; of a group that is over, those people who were told the last thing that was said there."""
    if name in world.groups:
        return world.groups[name].participants
    last = words[-1]
    people = (one for one in last.receiver if one in world.agents and world.agents[one].spec.kind == "human")
    return (last.sender_id, *people)
