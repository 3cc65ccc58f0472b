"""Limits on money, tokens and time of each run. A call that could exceed one is not made."""

import asyncio

from greenroom import Agent, Greenroom, RefusedError, RunLimits

poet = Agent("poet", "You write short poems.")


async def main() -> None:
    async with Greenroom(max_tokens=100_000, max_time=60) as greenroom:  # for each run
        try:
            result = await greenroom.run(poet, "Write a poem about tea.", limits=RunLimits(cost=0.000001))
        except RefusedError as error:
            print(f"stopped ({error.rejection.code}), run {error.run_id}: {error}")
            result = await greenroom.resume(poet, error.run_id, limits=RunLimits(cost=0.50))
        print(result.output)
        print(f"${result.usage.cost:.4f} of $0.50")


if __name__ == "__main__":
    asyncio.run(main())
