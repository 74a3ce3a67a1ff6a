// Sends one request with the official client, and prints what it read from the answer.

const { OpenAI, APIError } = require("openai");

const [baseURL, apiKey, request] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey });

async function ask(request) {
  if (request.models) {
    const names = [];
    for await (const model of client.models.list()) {
      names.push((await client.models.retrieve(model.id)).id);
    }
    return { models: names };
  }
  const counts = (usage) => [usage.prompt_tokens, usage.completion_tokens];
  if (!request.stream) {
    const completion = await client.chat.completions.create(request);
    const [choice] = completion.choices;
    return {
      text: choice.message.content,
      finish_reason: choice.finish_reason,
      usage: counts(completion.usage),
    };
  }
  let text = "", reason = null, usage = null;
  request.stream_options = { include_usage: true };
  for await (const chunk of await client.chat.completions.create(request)) {
    usage = chunk.usage ?? usage;
    for (const choice of chunk.choices) {
      text += choice.delta.content ?? "";
      reason = choice.finish_reason ?? reason;
    }
  }
  return { text, finish_reason: reason, usage: counts(usage) };
}

ask(JSON.parse(request))
  .catch((error) => {
    if (!(error instanceof APIError)) throw error;
    return { error: error.constructor.name, status: error.status, code: error.code };
  })
  .then((found) => console.log(JSON.stringify(found)));
