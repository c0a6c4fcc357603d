// The client on the real program, with scripted models that need no network.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";

import {
  Lorimer,
  RpcError,
  RunTimeout,
  RuntimeClosed,
  TurnFailed,
  type LorimerOptions,
  type Question,
  type RunResult,
  type SessionEvent,
  type Turn,
} from "../src/index.js";

const BINARY = process.env["LORIMER_TEST_BINARY"] ?? "lorimer";
/** No test comes near it; it only ends one that hangs. */
const timeoutMs = 60_000;

interface Reply {
  text?: string;
  finish?: string;
  calls?: { name: string; arguments: unknown }[];
}

let root: string;
let workspace: string;
let running: Lorimer[];

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "lorimer-client-")));
  workspace = join(root, "ws");
  mkdirSync(workspace);
  running = [];
});

afterEach(async () => {
  await Promise.all(running.map((lorimer) => lorimer.close()));
  rmSync(root, { recursive: true });
});

function bash(command: string): Reply {
  return { calls: [{ name: "bash", arguments: { command, description: "Does it" } }] };
}

/** A call that needs a person's leave wherever it runs. */
function asking(command: string): Reply {
  const wish = { sandbox_permissions: "danger-full-access", justification: "It has to." };
  return { calls: [{ name: "bash", arguments: { command, description: "Does it", ...wish } }] };
}

async function start(turns: Reply[], options: LorimerOptions = {}, fail = {}): Promise<Lorimer> {
  const model = join(root, "script.json");
  writeFileSync(model, JSON.stringify({ turns, fail }));
  const foreign = Object.keys(process.env).filter((name) => /^(LORIMER|DSH)_/.test(name));
  const env = { ...process.env, ...Object.fromEntries(foreign.map((name) => [name, undefined])) };
  const lorimer = await Lorimer.start({
    command: [BINARY, "sdk"],
    cwd: workspace,
    provider: "offline",
    model,
    permissionMode: "danger-full-access",
    env: { ...env, LORIMER_HOME: join(root, "home") },
    ...options,
  });
  running.push(lorimer);
  return lorimer;
}

/** The text of each tool result. */
function toolResults(result: RunResult): string[] {
  return result.events.flatMap((event) => {
    const block = event.type === "tool/result" ? event.data.message.content[0] : undefined;
    if (block?.type !== "tool-result") return [];
    return [block.content.map((piece) => (piece.type === "text" ? piece.text : "")).join("")];
  });
}

async function until(turn: Turn, type: SessionEvent["type"]): Promise<void> {
  for await (const event of turn) if (event.type === type) return;
  assert.fail(`no ${type}`);
}

test("a tool turn is streamed", async () => {
  const lorimer = await start([bash("echo from the tool"), { text: "done" }]);
  assert.equal(lorimer.info.runtime.cwd, workspace);
  const turn = await lorimer.session().stream("go");
  const types: string[] = [];
  let streamed = "";
  for await (const event of turn) {
    types.push(event.type);
    if (event.type === "assistant/chunk" && event.data.chunk.type === "text-delta") streamed += event.data.chunk.text;
  }
  const result = await turn.result();
  assert.deepEqual([types[0], types.at(-1), streamed], ["turn/start", "turn/end", "done"]);
  assert.deepEqual([result.text, result.stopReason, result.events.length], ["done", "completed", types.length]);
  assert.match(toolResults(result)[0]!, /from the tool/);
  assert.ok(result.usage!.inputTokens > 0);
});

test("turns follow each other, and sessions work at once", async () => {
  const lorimer = await start([{ text: "one" }, { text: "two" }]);
  const session = lorimer.session("chosen-id");
  const streams = [session.stream("first"), session.stream("second"), lorimer.session().stream("other")];
  const turns = await Promise.all(streams);
  const results = await Promise.all(turns.map((turn) => turn.result({ timeoutMs })));
  assert.deepEqual(results.map((result) => result.text), ["one", "two", "one"]);
});

test("a running turn is steered", async () => {
  const lorimer = await start([bash("while [ ! -e go ]; do sleep 0.05; done"), { text: "done" }]);
  const session = lorimer.session();
  const turn = await session.stream("begin");
  await until(turn, "tool/call");
  await session.steer("and another thing");
  writeFileSync(join(workspace, "go"), "");
  const { events } = await turn.result({ timeoutMs });
  const said = events.flatMap((event) => (event.type === "user/message" ? event.data.content : []));
  assert.ok(said.some((block) => block.type === "text" && block.text === "and another thing"));
});

test("a running turn is cancelled, by hand and by a signal", async () => {
  const lorimer = await start([bash("sleep 600")]);
  const session = lorimer.session();
  const [turn, waiting] = await Promise.all([session.stream("go"), session.stream("later")]);
  await until(turn, "tool/call");
  assert.equal(await session.cancel(), true);
  const aborted = (error: unknown) => error instanceof TurnFailed && error.result.stopReason === "aborted";
  await assert.rejects(turn.result({ timeoutMs }), aborted);
  assert.equal((await waiting.result({ timeoutMs, check: false })).stopReason, "discarded");

  const abort = new AbortController();
  const other = await lorimer.session().stream("go", { signal: abort.signal });
  await until(other, "tool/call");
  abort.abort(new Error("enough"));
  await assert.rejects(other.result({ timeoutMs }), /enough/);
  await assert.rejects(lorimer.session().run("go", { signal: abort.signal }), /enough/);
});

test("stored sessions go on in another process", async () => {
  const turns = [{ text: "one" }, { text: "two" }, { text: "three" }];
  const first = await start(turns);
  const { id } = first.session();
  await first.session(id).run("first");
  await first.session(id).run("second");
  await first.close();
  const lorimer = await start(turns);
  const unknown = (error: unknown) => error instanceof RpcError && /not found/.test(error.message);
  await assert.rejects(lorimer.resume("no-such-session"), unknown);
  assert.equal((await (await lorimer.resume(id)).run("third", { timeoutMs })).text, "three");
  const fork = await lorimer.fork(id, 1);
  {
    await using forked = await lorimer.resume(fork);
    assert.equal((await forked.run("other", { timeoutMs })).text, "two");
  }
  const listed = (await lorimer.list(workspace)).map((one) => [one.sessionId, one.open]);
  assert.deepEqual(new Map(listed as [string, boolean][]), new Map([[id, true], [fork, false]]));
  await lorimer.delete(fork);
  assert.deepEqual((await lorimer.list()).map((one) => one.sessionId), [id]);
});

test("the working directory changes", async () => {
  mkdirSync(join(workspace, "inner"));
  const session = (await start([{ text: "done" }])).session();
  assert.equal(await session.workingDirectory(), workspace);
  assert.equal(await session.setWorkingDirectory("inner"), join(workspace, "inner"));
  await assert.rejects(session.setWorkingDirectory("missing"), RpcError);
});

test("approvals and questions are asked", async () => {
  const question: Question = { id: "colour", question: "Which?", options: [{ label: "red" }, { label: "blue" }] };
  const wondering: Reply = { calls: [{ name: "ask_user_question", arguments: { questions: [question] } }] };
  let asked = 0;
  const lorimer = await start([asking("echo yes"), asking("echo no"), wondering, { text: "done" }], {
    permissionMode: "workspace-write",
    onApproval: async ({ toolName }) => (++asked === 1 ? toolName === "bash" : "not like this"),
    onQuestion: ({ questions }) => questions.map(({ id }) => ({ id, selected: ["blue"] })),
  });
  const results = toolResults(await lorimer.session().run("go", { timeoutMs }));
  assert.match(results[0]!, /yes/);
  assert.match(results[1]!, /not like this/);
  assert.match(results[2]!, /blue/);
});

test("a callback that throws is a no", async () => {
  writeFileSync(join(workspace, "keep"), "");
  const onApproval = () => {
    throw new Error("no idea");
  };
  const lorimer = await start([asking("rm keep"), { text: "done" }], { permissionMode: "workspace-write", onApproval });
  await lorimer.session().run("go", { timeoutMs });
  assert.ok(existsSync(join(workspace, "keep")));
});

test("failures and halves of answers are told", async () => {
  const lorimer = await start([{ text: "half", finish: "length" }], {}, { 1: { status: 401, message: "who are you" } });
  const session = lorimer.session();
  await assert.rejects(session.run("go", { timeoutMs }), /AUTH.*who are you/);
  const result = await session.run("go", { timeoutMs, check: false });
  assert.deepEqual([result.text, result.stopReason], ["half", "max-tokens"]);
});

test("a turn that takes too long is cancelled", async () => {
  const session = (await start([bash("sleep 600"), { text: "ready" }])).session();
  await assert.rejects(
    session.run("go", { timeoutMs: 1_000 }),
    (error) => error instanceof RunTimeout && error.result?.stopReason === "aborted",
  );
  assert.equal((await session.run("and now?", { timeoutMs })).text, "ready");
});

test("a killed runtime ends everything", async () => {
  const lorimer = await start([bash("sleep 5")]);
  const session = lorimer.session();
  const turn = await session.stream("go");
  await until(turn, "tool/call");
  process.kill(lorimer.pid!, "SIGKILL");
  const killed = (error: unknown) => error instanceof RuntimeClosed && error.signal === "SIGKILL";
  await assert.rejects(turn.result({ timeoutMs }), killed);
  await assert.rejects(session.run("more"), killed);
  await assert.rejects(until(turn, "turn/end"), killed);
  await lorimer.close();
});

test("programs that cannot serve are told and leave nothing", async () => {
  await assert.rejects(start([{}], { provider: "nobody" }), /no adapter registered/);
  const complain = "console.error('no such thing'); process.exit(3)";
  await assert.rejects(
    start([{}], { command: [process.execPath, "-e", complain] }),
    (error) => error instanceof RuntimeClosed && error.exitCode === 3 && /no such thing/.test(error.message),
  );
  await assert.rejects(start([{}], { command: [join(root, "missing")] }), /ENOENT/);
  const stubborn = "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)";
  await assert.rejects(
    start([{}], { command: [process.execPath, "-e", stubborn], startTimeoutMs: 500, closeTimeoutMs: 300 }),
    RunTimeout,
  );
});
