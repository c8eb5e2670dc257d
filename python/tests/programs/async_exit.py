"""Ends right after its last awaited call: argv = url, namespace."""

import asyncio
import sys

import semel

shop = semel.Semel(sys.argv[1], namespace=sys.argv[2])


@shop.once(key="number")
async def charge(number: int) -> int:
    return number


async def main() -> None:
    for number in range(20):
        await charge(number)
    for number in range(20, 60):
        asyncio.ensure_future(charge(number))
    await asyncio.sleep(0)


asyncio.run(main())
