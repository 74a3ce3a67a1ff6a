"""Shared code of the Python peers of the loop benchmark: the task, the tool, and the concurrency. Each
peer is called with URL AT_ONCE TOTAL and fails if a run does not give the expected answer."""

import asyncio
import sys
from collections.abc import Awaitable, Callable

INSTRUCTION = "You answer questions about the weather. Look before you answer."
TASK = "Which city has the worse weather today, Oslo or Bergen?"
MODEL = "fake"
KEY = "no-key"


def url() -> str:
    """The base URL of the server."""
    return sys.argv[1]


def weather(city: str, days: int) -> str:
    """Tells the weather of a city for the coming days"""
    return f"{city}: rain on each of the next {days} days"


def make(run: Callable[[], Awaitable[str]]) -> None:
    """Makes TOTAL runs, AT_ONCE at a time."""
    at_once, total = int(sys.argv[2]), int(sys.argv[3])
    asyncio.run(_all(run, at_once, total))


async def _all(run: Callable[[], Awaitable[str]], at_once: int, total: int) -> None:
    numbers = iter(range(total))

    async def work() -> None:
        for _ in numbers:
            answer = await run()
            if "Bergen" not in answer:
                raise SystemExit(f"no answer: {answer}")

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(work())
