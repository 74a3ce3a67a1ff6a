"""An MCP server over standard input and output whose tools are the simulated APIs of the Berkeley
Function Calling Leaderboard's multi-turn tasks (the package `bfcl-eval`, Apache-2.0, which is fetched
and not part of this repository). The state of the APIs lives here and goes on through a task.

`server.py` serves; `server.py tasks` prints the package's own tasks, one JSON object a line.

Beside the APIs there are two tools for whoever measures, which no agent declares: `bench_load` begins a
task, and `bench_check` replays what was expected in a twin of the APIs and compares the two as the
leaderboard's own state checker does.
"""

import ast
import copy
import importlib
import inspect
import json
import sys
from pathlib import Path

import bfcl_eval
from bfcl_eval.constants.executable_backend_config import (
    CLASS_FILE_PATH_MAPPING,
    MULTI_TURN_FUNC_DOC_FILE_MAPPING,
    STATELESS_CLASSES,
)
from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import state_checker

DATA = Path(bfcl_eval.__file__).parent / "data"

# The APIs of the multi-turn tasks. The others of the package need what is not simulated.
CLASSES = [
    "GorillaFileSystem",
    "MathAPI",
    "MessageAPI",
    "TicketAPI",
    "TradingBot",
    "TravelAPI",
    "TwitterAPI",
    "VehicleControlAPI",
]

VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]

# The leaderboard's words for types, where JSON Schema has others.
TYPES = {"dict": "object", "float": "number", "tuple": "array", "list": "array", "bool": "boolean"}

CONTROL = [
    {
        "name": "bench_load",
        "description": "Begins a task: puts the APIs into their first state, and tells the tools and the expected calls.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "classes": {"type": "array", "items": {"type": "string"}},
                "initial_config": {"type": "object"},
                "expected": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
            },
            "required": ["classes", "initial_config", "expected"],
        },
    },
    {
        "name": "bench_check",
        "description": "Compares the state of the APIs with that after the expected calls of so many turns.",
        "inputSchema": {
            "type": "object",
            "properties": {"turns": {"type": "integer"}},
            "required": ["turns"],
        },
    },
]


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def schema(said):
    """What the leaderboard says of a value, in the words of JSON Schema."""
    translated = {}
    for key in ("description", "enum", "default"):
        if key in said:
            translated[key] = said[key]
    kind = said.get("type")
    if kind and kind != "any":
        translated["type"] = TYPES.get(kind, kind)
    if "items" in said:
        translated["items"] = schema(said["items"])
    if "properties" in said:
        properties = said["properties"].items()
        translated["properties"] = {name: schema(inner) for name, inner in properties}
        translated["required"] = [name for name in said.get("required", []) if name in said["properties"]]
    return translated


def documented():
    """The tools of each API."""
    tools, owners = [], {}
    for owner in CLASSES:
        for said in lines(DATA / "multi_turn_func_doc" / MULTI_TURN_FUNC_DOC_FILE_MAPPING[owner]):
            name = said["name"]
            if name in owners:
                raise SystemExit(f"both {owners[name]} and {owner} have a tool {name}")
            owners[name] = owner
            tools.append(
                {
                    "name": name,
                    "description": said["description"],
                    "inputSchema": schema(said["parameters"]),
                    "annotations": {"openWorldHint": False},
                }
            )
    return tools, owners


TOOLS, OWNERS = documented()


def made(classes, initial_config):
    """The APIs in their first state."""
    apis = {}
    for name in classes:
        api = getattr(importlib.import_module(CLASS_FILE_PATH_MAPPING[name]), name)()
        if name not in STATELESS_CLASSES:
            api._load_scenario(copy.deepcopy(initial_config.get(name, {})), long_context=False)
        apis[name] = api
    return apis


def parsed(text):
    """A call that is written as Python, with the names of arguments that are given by place."""
    call = ast.parse(text.strip(), mode="eval").body
    name = call.func.id
    owner = getattr(importlib.import_module(CLASS_FILE_PATH_MAPPING[OWNERS[name]]), OWNERS[name])
    names = [name for name in inspect.signature(getattr(owner, name)).parameters if name != "self"]
    arguments = {key: ast.literal_eval(value) for key, value in zip(names, call.args)}
    arguments.update((keyword.arg, ast.literal_eval(keyword.value)) for keyword in call.keywords)
    return {"name": name, "arguments": arguments}


def failed(result):
    return isinstance(result, dict) and bool(result.get("error"))


class Scenario:
    """A task under way: its APIs, and the twin in which the expected calls are made."""

    def __init__(self, classes, initial_config, expected):
        self.calls = [[parsed(call) for call in turn] for turn in expected]
        self.apis = made(classes, initial_config)
        self.twin = made(classes, initial_config)
        self.replayed = 0

    def check(self, turns):
        errors = []
        while self.replayed < turns:
            for call in self.calls[self.replayed]:
                result = called(self.twin, call["name"], copy.deepcopy(call["arguments"]))
                if failed(result):
                    errors.append({"call": call, "error": str(result["error"])})
            self.replayed += 1
        verdict = state_checker(self.apis, self.twin)
        answer = {"equal": verdict["valid"], "errors": errors}
        if not verdict["valid"]:
            answer["differences"] = sorted(verdict["details"]["differences"])
        return answer


def called(apis, name, arguments):
    """What an API answers. One that fails in Python answers with an error, too."""
    owner = OWNERS.get(name)
    if owner not in apis:
        return {"error": f"there is no tool {name} in this task"}
    try:
        return getattr(apis[owner], name)(**arguments)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


class Serving:
    def __init__(self):
        self.scenario = None

    def call(self, name, arguments):
        if name == "bench_load":
            try:
                self.scenario = Scenario(**arguments)
            except Exception as error:
                return {"error": f"{type(error).__name__}: {error}"}
            tools = [tool["name"] for tool in TOOLS if OWNERS[tool["name"]] in arguments["classes"]]
            return {"calls": self.scenario.calls, "tools": tools}
        if self.scenario is None:
            return {"error": "no task has begun"}
        if name == "bench_check":
            return self.scenario.check(arguments["turns"])
        return called(self.scenario.apis, name, arguments)

    def answer(self, method, params):
        if method == "initialize":
            asked = params.get("protocolVersion")
            return {
                "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "bfcl", "version": "1"},
            }
        if method == "ping":
            return {}
        if method == "tools/list":
            return {"tools": TOOLS + CONTROL}
        if method == "tools/call":
            result = self.call(params["name"], params.get("arguments") or {})
            structured = result if isinstance(result, dict) else {"result": result}
            # What JSON has no word for is told as text, as the leaderboard does.
            structured = json.loads(json.dumps(structured, default=str))
            is_error = failed(structured)
            text = str(structured["error"]) if is_error else json.dumps(structured)
            answer = {"content": [{"type": "text", "text": text}], "isError": is_error}
            if not is_error:
                answer["structuredContent"] = structured
            return answer
        return None


def serve():
    serving = Serving()
    # What the APIs print must not get among the messages.
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            result = serving.answer(message.get("method"), message.get("params") or {})
            if result is None:
                reply["error"] = {"code": -32601, "message": "there is no such method"}
            else:
                reply["result"] = result
        except Exception as error:
            reply["error"] = {"code": -32603, "message": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(reply) + "\n")
        out.flush()


def tasks():
    """The package's tasks in the form that the benchmark reads."""
    answers = {row["id"]: row["ground_truth"] for row in lines(DATA / "possible_answer" / "BFCL_v4_multi_turn_base.json")}
    for row in lines(DATA / "BFCL_v4_multi_turn_base.json"):
        texts = ["\n".join(said["content"] for said in turn if said["role"] == "user") for turn in row["question"]]
        task = {
            "id": row["id"],
            "turns": texts,
            "classes": row["involved_classes"],
            "initial_config": row["initial_config"],
            "expected": {"calls": answers[row["id"]]},
        }
        print(json.dumps(task))


if __name__ == "__main__":
    tasks() if sys.argv[1:] == ["tasks"] else serve()
