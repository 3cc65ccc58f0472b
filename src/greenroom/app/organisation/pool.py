"""The conversation pool of a person: what was said in groups and privately, and the notices that they were given.

A view: made from the messages of the log, which never change.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final, cast

from greenroom.app.organisation.letters import notices, waiting_of
from greenroom.core.base.ids import AgentId, GroupId
from greenroom.core.base.records import record, whole
from greenroom.core.state.message import Message
from greenroom.core.state.portrait import Portrait, plain
from greenroom.core.state.world import World

STAMP: Final = "%Y-%m-%d %H:%M:%S"


@record
class GroupWord:
    """What was said in a group."""

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
    """What was said between this person and another agent, by either of them."""

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
        groups = [{**whole(talk), "messages": [*map(whole, talk.messages)]} for talk in self.conversation_groups]
        privates = {name: [*map(whole, said)] for name, said in self.conversation_privates.items()}
        fields = {**whole(self), "conversation_groups": groups, "conversation_privates": privates}
        return cast("Portrait", plain(fields))


def pool_of(world: World, messages: Iterable[Message], person: AgentId, language: str) -> Pool:
    """What this person knows of all these messages."""
    heard = [message for message in messages if message.sender_id == person or person in message.receiver]
    privates: dict[str, list[Private]] = {}
    for message in heard:
        for other, said in _private(message, person) if message.group is None else ():
            privates.setdefault(other, []).append(said)
    return Pool(
        conversation_groups=tuple(_groups(world, heard, person)),
        conversation_privates={other: tuple(said) for other, said in privates.items()},
        global_messages=tuple(notice for message in heard for notice in notices(message, person, language)),
    )


def stamp(at: int) -> str:
    """A moment as people read it, where they are."""
    return time.strftime(STAMP, time.localtime(at / 1000))


def _private(message: Message, person: AgentId) -> Iterator[tuple[str, Private]]:
    """The message as it stands in the talk with each other agent. One that is sent to several is in all of them."""
    others = [(message.sender_id, person)]
    if message.sender_id == person:
        others = [(name, name) for name in message.receiver if name != person]
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
    joined = sorted(name for name, group in world.groups.items() if person in group.participants)
    said: dict[GroupId, list[Message]] = {name: [] for name in joined}
    for message in heard:
        if message.group is not None:
            said.setdefault(message.group, []).append(message)
    for name, words in said.items():
        yield GroupTalk(
            group_id=name,
            participants=_participants(world, name, words),
            messages=tuple(
                GroupWord(sender_id=word.sender_id, content=word.message, timestamp=stamp(word.sent_at))
                for word in words
            ),
        )


def _participants(world: World, name: GroupId, words: list[Message]) -> tuple[str, ...]:
    """Who takes part; of a group that is over, those people who were told the last thing that was said there."""
    if name in world.groups:
        return world.groups[name].participants
    last = words[-1]
    people = (who for who in last.receiver if who in world.agents and world.agents[who].spec.kind == "human")
    return (last.sender_id, *people)
