"""The run of the loop benchmark in openai-agents, over chat completions and without tracing."""

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

import runs

set_tracing_disabled(True)
client = AsyncOpenAI(base_url=runs.url(), api_key=runs.KEY)
agent = Agent(
    name="weather",
    model=OpenAIChatCompletionsModel(model=runs.MODEL, openai_client=client),
    instructions=runs.INSTRUCTION,
    tools=[function_tool(runs.weather)],
)


async def run() -> str:
    return str((await Runner.run(agent, runs.TASK)).final_output)


runs.make(run)
