"""The run of the loop benchmark in agno."""

from agno.agent import Agent
from agno.models.openai import OpenAIChat

import runs

agent = Agent(
    model=OpenAIChat(id=runs.MODEL, api_key=runs.KEY, base_url=runs.url()),
    instructions=runs.INSTRUCTION,
    tools=[runs.weather],
    telemetry=False,
)


async def run() -> str:
    return str((await agent.arun(runs.TASK)).content)


runs.make(run)
