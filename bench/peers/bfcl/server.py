"""An MCP server over standard input and output whose tools are the simulated APIs of the Berkeley
Function Calling Leaderboard's multi-turn tasks (the package `bfcl-eval`, Apache-2.0, which is fetched
and not part of this repository). The state of the APIs is kept here for the duration of a task.

`server.py` serves; `server.py tasks` prints the package's own tasks, one JSON object per line.

Besides the APIs there are two control tools for the benchmark, which no agent declares: `bench_load` starts
a task, and `bench_check` replays the expected calls in a copy of the APIs and compares the two with the
leaderboard's own state checker.
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

# The APIs of the multi-turn tasks. The other APIs of the package need services that are not simulated.
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

# The leaderboard's type names that differ from JSON Schema.
TYPES = {"dict": "object", "float": "number", "tuple": "array", "list": "array", "bool": "boolean"}

CONTROL = [
    {
        "name": "bench_load",
        "description": "Starts a task: puts the APIs into their initial state, and returns the tools and the expected calls.",
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
        "description": "Compares the state of the APIs with the state after the expected calls of the given number of turns.",
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


def to_json_schema(described):
    """Translates the leaderboard's description of a value to JSON Schema."""
    translated = {}
    for key in ("description", "enum", "default"):
        if key in described:
            translated[key] = described[key]
    kind = described.get("type")
    if kind and kind != "any":
        translated["type"] = TYPES.get(kind, kind)
    if "items" in described:
        translated["items"] = to_json_schema(described["items"])
    if "properties" in described:
        properties = described["properties"].items()
        translated["properties"] = {name: to_json_schema(inner) for name, inner in properties}
        translated["required"] = [name for name in described.get("required", []) if name in described["properties"]]
    return translated


def read_tools():
    """The tools of each API."""
    tools, owners = [], {}
    for owner in CLASSES:
        for documentation in lines(DATA / "multi_turn_func_doc" / MULTI_TURN_FUNC_DOC_FILE_MAPPING[owner]):
            name = documentation["name"]
            if name in owners:
                raise SystemExit(f"both {owners[name]} and {owner} have a tool {name}")
            owners[name] = owner
            tools.append(
                {
                    "name": name,
                    "description": documentation["description"],
                    "inputSchema": to_json_schema(documentation["parameters"]),
                    "annotations": {"openWorldHint": False},
                }
            )
    return tools, owners


TOOLS, OWNERS = read_tools()


def create_apis(classes, initial_config):
    """Creates the APIs in their initial state."""
    apis = {}
    for name in classes:
        api = getattr(importlib.import_module(CLASS_FILE_PATH_MAPPING[name]), name)()
        if name not in STATELESS_CLASSES:
            api._load_scenario(copy.deepcopy(initial_config.get(name, {})), long_context=False)
        apis[name] = api
    return apis


def parse_call(text):
    """Parses a call written as Python; positional arguments get their names."""
    call = ast.parse(text.strip(), mode="eval").body
    name = call.func.id
    owner = getattr(importlib.import_module(CLASS_FILE_PATH_MAPPING[OWNERS[name]]), OWNERS[name])
    names = [name for name in inspect.signature(getattr(owner, name)).parameters if name != "self"]
    arguments = {key: ast.literal_eval(value) for key, value in zip(names, call.args)}
    arguments.update((keyword.arg, ast.literal_eval(keyword.value)) for keyword in call.keywords)
    return {"name": name, "arguments": arguments}


def is_failure(result):
    return isinstance(result, dict) and bool(result.get("error"))


class Scenario:
    """A running task: its APIs, and a copy in which the expected calls are made."""

    def __init__(self, classes, initial_config, expected):
        self.calls = [[parse_call(call) for call in turn] for turn in expected]
        self.apis = create_apis(classes, initial_config)
        self.copy = create_apis(classes, initial_config)
        self.replayed = 0

    def check(self, turns):
        errors = []
        while self.replayed < turns:
            for call in self.calls[self.replayed]:
                result = call_api(self.copy, call["name"], copy.deepcopy(call["arguments"]))
                if is_failure(result):
                    errors.append({"call": call, "error": str(result["error"])})
            self.replayed += 1
        verdict = state_checker(self.apis, self.copy)
        answer = {"equal": verdict["valid"], "errors": errors}
        if not verdict["valid"]:
            answer["differences"] = sorted(verdict["details"]["differences"])
        return answer


def call_api(apis, name, arguments):
    """Calls an API. A Python exception becomes an error result."""
    owner = OWNERS.get(name)
    if owner not in apis:
        return {"error": f"there is no tool {name} in this task"}
    try:
        return getattr(apis[owner], name)(**arguments)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


class Server:
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
            return {"error": "no task is loaded"}
        if name == "bench_check":
            return self.scenario.check(arguments["turns"])
        return call_api(self.scenario.apis, name, arguments)

    def answer(self, method, params):
        if method == "initialize":
            requested = params.get("protocolVersion")
            return {
                "protocolVersion": requested if requested in VERSIONS else VERSIONS[0],
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
            # Values that JSON cannot represent become text, as in the leaderboard.
            structured = json.loads(json.dumps(structured, default=str))
            is_error = is_failure(structured)
            text = str(structured["error"]) if is_error else json.dumps(structured)
            answer = {"content": [{"type": "text", "text": text}], "isError": is_error}
            if not is_error:
                answer["structuredContent"] = structured
            return answer
        return None


def serve():
    server = Server()
    # Output of the APIs must not mix with the messages.
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            result = server.answer(message.get("method"), message.get("params") or {})
            if result is None:
                reply["error"] = {"code": -32601, "message": "unknown method"}
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
        texts = ["\n".join(message["content"] for message in turn if message["role"] == "user") for turn in row["question"]]
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
