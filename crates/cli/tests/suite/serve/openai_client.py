"""Sends one request with the official client, and prints what it read from the answer."""

import json
import sys

import openai

base_url, key, request = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
client = openai.OpenAI(base_url=base_url, api_key=key)
try:
    if request.get("models"):
        listed = client.models.list()
        names = [model.id for model in listed]
        assert [client.models.retrieve(name).id for name in names] == names
        found = {"models": names}
    elif request["stream"]:
        text, reason, usage = "", None, None
        request["stream_options"] = {"include_usage": True}
        for chunk in client.chat.completions.create(**request):
            if chunk.usage:
                usage = chunk.usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                reason = choice.finish_reason or reason
        found = {
            "text": text,
            "finish_reason": reason,
            "usage": [usage.prompt_tokens, usage.completion_tokens],
        }
    else:
        completion = client.chat.completions.create(**request)
        choice, usage = completion.choices[0], completion.usage
        found = {
            "text": choice.message.content,
            "finish_reason": choice.finish_reason,
            "usage": [usage.prompt_tokens, usage.completion_tokens],
        }
except openai.APIStatusError as error:
    found = {"error": type(error).__name__, "status": error.status_code, "code": error.code}
print(json.dumps(found))
