// Drives agents with the published TypeScript client of the DeepSeek Harness, as JSON lines on standard input ask for
// it. The lines are those of `drive.py`. The first argument is a folder with the client in its node_modules.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const packages = createRequire(process.argv[2] + "/");
const { DeepSeekHarness } = await import(pathToFileURL(packages.resolve("@deepseek-ai/dsh-sdk-client")).href);

const harnesses = new Map();
const tasks = new Map();

const milliseconds = (seconds) => (seconds === undefined ? undefined : seconds * 1000);

/** The options of the Python client as this one has them; what it has none for is left to its arguments. */
function optionsOf(given) {
  const env = { ...process.env, ...given.env, DSH_HOME: given.dsh_home };
  if (given.base_url !== undefined) env.DEEPSEEK_BASE_URL = given.base_url;
  if (given.api_key !== undefined) env.DEEPSEEK_API_KEY = given.api_key;
  const patches = (given.patches ?? []).flatMap((patch) => ["--patch", patch]);
  return {
    launch: {
      command: given.dsh_bin,
      args: [...(given.args ?? ["--profile", "sdk"]), ...patches],
      cwd: given.runtime_cwd ?? given.cwd,
      env,
      requestTimeoutMs: milliseconds(given.request_timeout_seconds),
      shutdownTimeoutMs: milliseconds(given.shutdown_timeout_seconds),
    },
    cwd: given.cwd,
    provider: given.provider,
    model: given.model,
    maxTokens: given.max_tokens,
  };
}

async function open({ harness: name, options }) {
  const harness = new DeepSeekHarness(optionsOf(options));
  harness.client.start();
  // The harness takes another client when this one is refused.
  const client = harness.client;
  const child = client.child;
  harnesses.set(name, { harness, client, child });
  await harness.start();
  return { pid: child.pid };
}

async function run({ harness, session, input }) {
  const notifications = [];
  const result = await harnesses.get(harness).harness.run(input, {
    sessionId: session,
    onNotification: (notification) => notifications.push(notification),
  });
  return { text: result.finalResponse, finishReason: null, events: result.events, notifications };
}

async function close({ harness: name }) {
  const { harness, child } = harnesses.get(name);
  harnesses.delete(name);
  await harness.close();
  return { exitCode: child.exitCode, stderr: harness.client.stderrTail };
}

const request = (ask, method, params) => harnesses.get(ask.harness).harness.client.request(method, params);

const OPS = {
  open,
  run,
  async resume(ask) {
    await request(ask, "session/resume", { sessionId: ask.session });
    return { id: harnesses.get(ask.harness).harness.session(ask.session).id };
  },
  getDirectory: async (ask) => (await request(ask, "session/working-directory/get", { sessionId: ask.session })).cwd,
  setDirectory: async (ask) =>
    (await request(ask, "session/working-directory/set", { sessionId: ask.session, path: ask.path })).cwd,
  said: (ask) => harnesses.get(ask.harness).client.stderrTail.join("\n"),
  exitCode: (ask) => harnesses.get(ask.harness).child.exitCode,
  close,
};

async function outcome(ask) {
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1000;
  try {
    return { ok: (await OPS[ask.op](ask)) ?? null, seconds: seconds() };
  } catch (error) {
    const { name: type, message, code = null } = error;
    return { error: { type, message, code }, seconds: seconds() };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const ask = JSON.parse(line);
  let answer;
  if (ask.op === "wait") {
    answer = await tasks.get(ask.task);
    tasks.delete(ask.task);
  } else if (ask.task !== undefined) {
    tasks.set(ask.task, outcome(ask));
    answer = { ok: null, seconds: 0 };
  } else {
    answer = await outcome(ask);
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
// A turn may still run; its runtime ends with its standard input.
process.exit(0);
