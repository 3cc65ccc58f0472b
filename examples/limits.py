"""Limits on money, tokens and time of each run. A call that could exceed one is not made."""

import asyncio

from greenroom import Agent, Greenroom, RefusedError

poet = Agent("poet", "You write short poems.")


async def main() -> None:
    for dollars in (0.000001, 0.50):
        async with Greenroom(max_cost=dollars, max_tokens=100_000, max_time=60) as greenroom:
            try:
                result = await greenroom.run(poet, "Write a poem about tea.")
            except RefusedError as error:
                print(f"stopped ({error.rejection.code}), run {error.run_id}: {error}")
            else:
                print(result.output)
                print(f"${result.usage.cost:.4f} of ${dollars:.2f}")


if __name__ == "__main__":
    asyncio.run(main())
