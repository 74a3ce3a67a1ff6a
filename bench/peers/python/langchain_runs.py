"""The run of the loop benchmark in langchain, on langgraph and without a checkpointer."""

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

import runs

model = ChatOpenAI(model=runs.MODEL, api_key=runs.KEY, base_url=runs.url())
agent = create_agent(model, tools=[runs.weather], system_prompt=runs.INSTRUCTION)


async def run() -> str:
    messages = [{"role": "user", "content": runs.TASK}]
    return str((await agent.ainvoke({"messages": messages}))["messages"][-1].content)


runs.make(run)
