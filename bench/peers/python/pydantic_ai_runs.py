"""The run of the loop benchmark in pydantic-ai."""

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import runs

provider = OpenAIProvider(base_url=runs.url(), api_key=runs.KEY)
agent = Agent(
    OpenAIChatModel(runs.MODEL, provider=provider),
    instructions=runs.INSTRUCTION,
    tools=[runs.weather],
)


async def run() -> str:
    return (await agent.run(runs.TASK)).output


runs.make(run)
