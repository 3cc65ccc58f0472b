"""Kill this program with `kill -9` while it measures, then start it again: finished measurements are not repeated."""

import asyncio
import os

from greenroom import Agent, Greenroom, tool

LEVELS = {"north": 310, "east": 275, "south": 402}


@tool(effect="pure")
async def measure(station: str) -> int:
    """Measure the water level at a station, in centimetres: north, east or south."""
    print(f"measuring {station} (kill -9 {os.getpid()})", flush=True)
    await asyncio.sleep(1)
    return LEVELS[station]


surveyor = Agent("surveyor", "Measure the stations one after the other, each once.", tools=[measure])


async def main() -> None:
    async with Greenroom() as greenroom:
        unfinished = [run for run in await greenroom.runs(surveyor) if not run.is_over]
        if unfinished:
            print(f"continuing run {unfinished[0].run_id}")
            result = await greenroom.resume(surveyor, unfinished[0].run_id)
        else:
            result = await greenroom.run(surveyor, "Which station has the highest level?")
        print(result.output)


if __name__ == "__main__":
    asyncio.run(main())
