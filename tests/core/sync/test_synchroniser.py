"""The one writer: group commit, tentative worlds, and what it does when the log does not do what it should."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.core.base.clock import Millis
from greenroom.core.base.errors import Bug, CommitUnknown, Rejection, StaleOwner, StoreFault, StoreFull, WorldFault
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.ports.codec import decode_outcome, encode_intent
from greenroom.core.ports.log import EventBatch, InboxRow, Lease, StreamHead
from greenroom.core.rules.decide import RULES
from greenroom.core.rules.intents import AddAgent, CreateTeam, PauseTeam, ResumeTeam
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.team import TeamPaused, TeamResumed
from greenroom.core.state.team_state import EMPTY_STATE
from greenroom.core.sync import synchroniser
from greenroom.core.sync.bus import CommitNotice
from greenroom.core.sync.synchroniser import Synchroniser

TEAM = "team"
BY = "door"


class Clock:
    """A clock that a test sets."""

    time = 1_000

    def now(self) -> Millis:
        return Millis(self.time)


class TroubledLog(MemoryLog):
    """A log to which a test can do what disks and networks do."""

    before: Callable[[], object] | None = None
    after: Callable[[], object] | None = None
    appends = 0
    headless = 0

    async def head(self, stream: str) -> StreamHead:
        """Where the stream stands, unless the test says that it cannot be read."""
        if self.headless:
            self.headless -= 1
            raise StoreFault("The connection is still cut.")
        return await super().head(stream)

    async def append(self, batch: EventBatch) -> int:
        """Append, with what the test wants before and after it."""
        self.appends += 1
        await self._happen(self.before)
        version = await super().append(batch)
        await self._happen(self.after)
        return version

    async def has_begun(self, count: int) -> None:
        """Wait until so many appends have begun."""
        for _ in range(10_000):
            if self.appends >= count:
                return
            await asyncio.sleep(0)
        raise AssertionError(f"only {self.appends} appends have begun")

    async def _happen(self, what: Callable[[], object] | None) -> None:
        found = what() if what is not None else None
        if asyncio.iscoroutine(found):
            await found


@asynccontextmanager
async def writing(log: TroubledLog, clock: Clock | None = None) -> AsyncIterator[Synchroniser]:
    """A writer of a fresh team."""

    async def no_nap(_: float) -> None:
        await asyncio.sleep(0)

    await log.create(TEAM, 0)
    lease = await log.acquire(TEAM, "me")
    assert isinstance(lease, Lease)
    sync = Synchroniser(log, lease, EMPTY_STATE, 0, clock=clock or Clock(), sleep=no_nap)
    sync.start()
    await sync.submit(CreateTeam(team_id=TeamId(TEAM), name="x"), by=BY)
    yield sync
    await sync.close()


def agent(name: str) -> AddAgent:
    return AddAgent(agent_id=AgentId(name), spec=AgentSpec(name=name))


async def test_requests_that_wait_together_are_one_commit() -> None:
    log = TroubledLog()
    async with writing(log) as sync:
        before = log.appends
        await asyncio.gather(*(sync.submit(agent(f"a{number}"), by=BY) for number in range(100)))
        assert log.appends == before + 1
        assert len(sync.state.agents) == 100


async def test_each_intent_is_decided_on_the_fold_of_the_ones_before_it() -> None:
    async with writing(TroubledLog()) as sync:
        verdicts = await sync.submit(agent("ann"), agent("ann"), agent("bob"), by=BY)
        assert [verdict.code if verdict else None for verdict in verdicts] == [None, "agent_exists", None]


async def test_of_what_is_asked_for_as_a_whole_all_happens_or_nothing() -> None:
    log = TroubledLog()
    async with writing(log) as sync:
        whole = sync.submit_atomic(agent("ann"), agent("ann"), agent("bob"), by=BY)
        other = sync.submit(agent("cy"), by=BY)
        verdicts = await whole
        assert [verdict.code if verdict else None for verdict in verdicts] == [None, "agent_exists"]
        assert (await other, list(sync.state.agents)) == ([None], ["cy"]), "others in the same commit are not hurt"
        assert await sync.submit_atomic(agent("ann"), agent("bob"), by=BY) == [None, None]
        assert sync.version == len(log._find_stream(TEAM).events)


async def test_nobody_sees_what_is_not_committed() -> None:
    log = TroubledLog()
    async with writing(log) as sync:
        gate = asyncio.Event()
        log.before = gate.wait
        wish = asyncio.ensure_future(sync.submit(agent("ann"), by=BY))
        await log.has_begun(2)
        assert "ann" not in sync.state.agents
        gate.set()
        await wish
        assert "ann" in sync.state.agents


async def test_a_refused_intent_writes_nothing() -> None:
    log = TroubledLog()
    async with writing(log) as sync:
        before = (log.appends, sync.version, sync.state)
        assert await sync.submit(ResumeTeam(), by=BY) != [None]
        assert (log.appends, sync.version) == before[:2]
        assert sync.state is before[2]


async def test_a_full_disk_loses_nothing_and_says_so() -> None:
    log = TroubledLog()
    told: list[str | None] = []
    async with writing(log) as sync:
        sync.bus.subscribe_trouble(told.append)
        left = [3]

        def full() -> None:
            if left[0]:
                left[0] -= 1
                raise StoreFull("The disk is full.")

        log.before = full
        assert await sync.submit(agent("ann"), by=BY) == [None]
        assert told == ["The disk is full.", None]
        assert "ann" in sync.state.agents
        assert (await log.head(TEAM)).version == sync.version


@pytest.mark.parametrize("headless", [0, 2])
async def test_a_commit_that_happened_unnoticed_is_found_at_the_head_once_that_can_be_read(headless: int) -> None:
    log = TroubledLog()
    async with writing(log) as sync:

        def cut_off() -> None:
            log.after = None
            log.headless = headless
            raise CommitUnknown("The connection was cut.")

        log.after = cut_off
        appends = log.appends
        assert await sync.submit(agent("ann"), by=BY) == [None]
        assert log.appends == appends + 1, "it was not written twice"
        assert (await log.head(TEAM)).version == sync.version == 2


async def test_a_commit_that_did_not_happen_is_made_again() -> None:
    log = TroubledLog()
    async with writing(log) as sync:

        def cut_off() -> None:
            log.before = None
            raise CommitUnknown("The connection was cut.")

        log.before = cut_off
        assert await sync.submit(agent("ann"), by=BY) == [None]
        assert (await log.head(TEAM)).version == sync.version == 2


async def test_a_stale_owner_is_refused_now_and_later() -> None:
    log = TroubledLog()
    async with writing(log) as sync:
        await log.acquire(TEAM, "somebody else", force=True)
        version = (await log.head(TEAM)).version
        wishes = [sync.submit(agent(name), by=BY) for name in ("ann", "bob")]
        found = await asyncio.gather(*wishes, return_exceptions=True)
        assert [type(one) for one in found] == [StaleOwner, StaleOwner]
        with pytest.raises(StaleOwner):
            await sync.submit(agent("eve"), by=BY)
        assert "ann" not in sync.state.agents
        assert (await log.head(TEAM)).version == version


async def test_a_store_that_stays_broken_stops_the_writer_and_says_why() -> None:
    log = TroubledLog()
    told: list[str | None] = []
    async with writing(log) as sync:
        sync.bus.subscribe_trouble(told.append)

        def broken() -> None:
            raise StoreFault("The file is damaged.")

        log.before = broken
        with pytest.raises(StoreFault, match="damaged"):
            await sync.submit(agent("ann"), by=BY)
        assert isinstance(sync.stopped, StoreFault)
        assert told == ["The file is damaged."] * 2, "when it begins, and when there is no hope left"
        log.before = None
        with pytest.raises(StoreFault, match="damaged"):
            await sync.submit(agent("bob"), by=BY)


async def test_a_result_that_cannot_be_written_costs_its_asker_and_nobody_else() -> None:
    async with writing(TroubledLog()) as sync:
        bad = AddAgent(agent_id=AgentId("ann"), spec=AgentSpec(name="ann", llm_config={"odd": object()}))
        found = await asyncio.gather(sync.submit(bad, by=BY), sync.submit(agent("bob"), by=BY), return_exceptions=True)
        assert isinstance(found[0], Bug)
        assert found[1] == [None]
        assert set(sync.state.agents) == {"bob"}


async def test_a_writer_that_breaks_says_so_and_leaves_nobody_waiting() -> None:
    log = TroubledLog()
    async with writing(log) as sync:

        def broken() -> None:
            raise ZeroDivisionError

        log.before = broken
        with pytest.raises(WorldFault, match="broke"):
            await sync.submit(agent("ann"), by=BY)
        assert sync.stopped is not None


async def test_a_rule_that_breaks_costs_its_asker_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setitem(RULES, PauseTeam, broken)
    async with writing(TroubledLog()) as sync:
        bad, good = await asyncio.gather(
            sync.submit(PauseTeam(), by=BY), sync.submit(agent("ann"), by=BY), return_exceptions=True
        )
        assert isinstance(bad, Bug)
        assert "PauseTeam" in str(bad)
        assert good == [None]


async def test_a_caller_that_goes_away_does_not_take_its_wish_along() -> None:
    log = TroubledLog()
    async with writing(log) as sync:
        gate = asyncio.Event()
        log.before = gate.wait
        wish = asyncio.ensure_future(sync.submit(agent("ann"), by=BY))
        await log.has_begun(2)
        wish.cancel()
        gate.set()
        await sync.submit(agent("bob"), by=BY)
        assert {"ann", "bob"} <= set(sync.state.agents)


async def test_time_never_runs_backwards_in_the_log() -> None:
    clock, seen = Clock(), list[int]()
    async with writing(TroubledLog(), clock) as sync:
        sync.bus.subscribe(lambda commit: seen.extend(event.at for event in commit.events))
        for time in (5_000, 2_000, 6_000):
            clock.time = time
            await sync.submit(agent(f"a{time}"), by=BY)
        assert seen == [5_000, 5_000, 6_000]


async def test_a_listener_that_breaks_does_not_keep_the_others_from_hearing() -> None:
    heard: list[CommitNotice] = []

    def broken(_: CommitNotice) -> None:
        raise ZeroDivisionError

    async with writing(TroubledLog()) as sync:
        sync.bus.subscribe(broken)
        stop = sync.bus.subscribe(heard.append)
        await sync.submit(PauseTeam(why="tea"), by=BY)
        stop()
        await sync.submit(ResumeTeam(), by=BY)
    assert [type(event) for commit in heard for event in commit.events] == [TeamPaused]
    assert TeamResumed not in [type(event) for commit in heard for event in commit.events]


async def test_taking_an_inbox_intent_and_its_events_are_one_transaction() -> None:
    log = TroubledLog()
    async with writing(log) as sync:
        for name, intent in (("good", agent("ann")), ("bad", ResumeTeam())):
            await log.put(TEAM, InboxRow(intent_id=name, by="cli", data=encode_intent(intent), put_at=0))
            await sync.take_from_inbox(name, intent, by=BY)
        await log.put(TEAM, InboxRow(intent_id="garbage", by="cli", data=b"{", put_at=0))
        await sync.take_from_inbox("garbage", Rejection(code="bad_intent", why="Not an intent."), by=BY)
        assert await log.list_inbox(TEAM) == []
        answers = [decode_outcome(await log.outcome(TEAM, name) or b"") for name in ("good", "bad", "garbage")]
        assert [answer.code if answer else None for answer in answers] == [None, "not_paused", "bad_intent"]


async def test_closing_answers_everybody() -> None:
    log = TroubledLog()
    async with writing(log) as sync:
        pass
    with pytest.raises(StaleOwner, match="closed"):
        await sync.submit(agent("ann"), by=BY)


async def test_closing_writes_what_was_asked_for_before() -> None:
    log = TroubledLog()
    async with writing(log) as sync:
        gate = asyncio.Event()
        log.before = gate.wait
        wishes = [asyncio.ensure_future(sync.submit(agent(name), by=BY)) for name in ("ann", "bob")]
        await log.has_begun(2)
        late = asyncio.ensure_future(sync.submit(agent("cy"), by=BY))
        await asyncio.sleep(0)
        closing = asyncio.create_task(sync.close())
        await asyncio.sleep(0)
        gate.set()
        await closing
        await sync.close()
        assert [await wish for wish in (*wishes, late)] == [[None]] * 3
        assert set(sync.state.agents) == {"ann", "bob", "cy"}


async def test_whoever_has_gone_is_not_told_that_the_writer_stopped() -> None:
    log = TroubledLog()
    async with writing(log) as sync:
        gate = asyncio.Event()
        log.before = gate.wait
        wish = asyncio.ensure_future(sync.submit(agent("ann"), by=BY))
        await log.has_begun(2)
        wish.cancel()
        await asyncio.sleep(0)
        await log.acquire(TEAM, "somebody else", force=True)
        gate.set()
        with pytest.raises(StaleOwner):
            await sync.submit(agent("bob"), by=BY)


async def test_closing_does_not_wait_for_a_disk_that_becomes_full_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise StoreFull("full")

    async def then_full() -> None:
        await gate.wait()
        full()

    monkeypatch.setattr(synchroniser, "CLOSING_TIMEOUT_S", 0.01)
    log, gate = TroubledLog(), asyncio.Event()
    async with writing(log) as sync:
        log.before = then_full
        wish = asyncio.ensure_future(sync.submit(agent("ann"), by=BY))
        await log.has_begun(2)
        closing = asyncio.create_task(sync.close())
        await asyncio.sleep(0)
        gate.set()
        await asyncio.wait_for(closing, 10)
        with pytest.raises(StaleOwner, match="closed"):
            await wish


async def test_a_hiccup_of_the_disk_while_closing_costs_nothing() -> None:
    async def hiccup() -> None:
        await gate.wait()
        log.before = None
        raise StoreFull("full")

    log, gate = TroubledLog(), asyncio.Event()
    async with writing(log) as sync:
        log.before = hiccup
        wish = asyncio.ensure_future(sync.submit(agent("ann"), by=BY))
        await log.has_begun(2)
        closing = asyncio.create_task(sync.close())
        await asyncio.sleep(0)
        gate.set()
        await asyncio.wait_for(closing, 10)
        assert await wish == [None]
