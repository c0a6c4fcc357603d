// One process of the runtime and the frames between: a JSON object a line, in each direction.

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";

import { RpcError, RunTimeout, RuntimeClosed } from "./errors.js";
import type {
  RequestCancelled,
  Requests,
  ReverseRequests,
  SessionEventParams,
  SessionStatusParams,
} from "./protocol.js";

/** Lines of standard error that are kept for an error's text. */
const STDERR_LINES = 50;
/** How long a process may outlive its standard output, or the other way round. */
const END_GRACE_MS = 2_000;

/** What a connection tells whoever made it. */
export interface Listener {
  event(params: SessionEventParams): void;
  /** A session has nothing left to do. */
  idle(sessionId: string): void;
  answer<Name extends keyof ReverseRequests>(name: Name, params: ReverseRequests[Name]["params"]): Promise<unknown>;
  ended(error: RuntimeClosed): void;
}

interface Waiting {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

interface Frame {
  id?: unknown;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { code: number; message: string };
}

/** Starts a runtime and speaks with it. Whatever happens, a request ends. */
export class Connection {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #listener: Listener;
  readonly #stderr: string[] = [];
  readonly #waiting = new Map<number, Waiting>();
  /** Requests of the runtime that are still of interest. */
  readonly #asked = new Set<unknown>();
  readonly #exited: Promise<void>;
  readonly #ended: Promise<void>;
  #nextId = 1;
  #closed: RuntimeClosed | undefined;

  constructor(command: readonly string[], env: NodeJS.ProcessEnv | undefined, listener: Listener) {
    const [program = "lorimer", ...args] = command;
    this.#listener = listener;
    this.#child = spawn(program, args, { env: env ?? process.env, stdio: "pipe" });
    let why: string | undefined;
    this.#exited = new Promise((resolve) => {
      this.#child.once("exit", () => resolve());
      this.#child.once("error", (error) => {
        why = error.message;
        resolve();
      });
    });
    // A runtime that is gone takes no more frames; its end says why.
    this.#child.stdin.on("error", () => {});
    createInterface({ input: this.#child.stderr }).on("line", (line) => {
      this.#stderr.push(line);
      this.#stderr.splice(0, this.#stderr.length - STDERR_LINES);
    });
    const lines = createInterface({ input: this.#child.stdout, crlfDelay: Infinity });
    lines.on("line", (line) => this.#take(line));
    const silent = new Promise<void>((resolve) => lines.once("close", resolve));
    this.#ended = this.#watch(silent, () => why);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Asks for something. `onResult` is told first, before anything that comes later is read. */
  request<Name extends keyof Requests>(
    name: Name,
    params: Requests[Name]["params"],
    options: { timeoutMs?: number; onResult?: (result: Requests[Name]["result"]) => void } = {},
  ): Promise<Requests[Name]["result"]> {
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(this.#closed);
      const { timeoutMs } = options;
      const timer =
        timeoutMs === undefined
          ? undefined
          : setTimeout(() => {
              this.#waiting.delete(id);
              reject(new RunTimeout(name, timeoutMs));
            }, timeoutMs);
      this.#waiting.set(id, {
        resolve: (result) => {
          clearTimeout(timer);
          options.onResult?.(result as Requests[Name]["result"]);
          resolve(result as Requests[Name]["result"]);
        },
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        },
      });
      this.#send({ jsonrpc: "2.0", id, method: name, params });
    });
  }

  /**
   * Ends the runtime: it is asked to, then its input ends, then it gets SIGTERM, then SIGKILL, each after `graceMs`. The
   * process is reaped when this is done.
   */
  async close(graceMs: number): Promise<void> {
    await this.request("shutdown", {}, { timeoutMs: graceMs }).catch(() => {});
    this.#child.stdin.end();
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      if (await within(this.#exited, graceMs)) break;
      this.#child.kill(signal);
    }
    await this.#ended;
  }

  #send(frame: object): void {
    this.#child.stdin.write(`${JSON.stringify(frame)}\n`);
  }

  /** Waits until the process has ended, and ends all waiting then. */
  async #watch(silent: Promise<void>, why: () => string | undefined): Promise<void> {
    await Promise.race([silent, this.#exited]);
    // The last lines may still be on their way. What the process leaves behind may hold its pipes open.
    await within(Promise.all([silent, this.#exited]), END_GRACE_MS);
    if (this.#child.exitCode === null && this.#child.signalCode === null && this.#child.pid !== undefined) {
      this.#child.kill("SIGKILL");
      await this.#exited;
    }
    for (const pipe of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) pipe.destroy();
    const closed = new RuntimeClosed(this.#child.exitCode, this.#child.signalCode, [...this.#stderr], why());
    this.#closed = closed;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const one of waiting) one.reject(closed);
    this.#listener.ended(closed);
  }

  #take(line: string): void {
    const frame = parse(line);
    if (frame?.method === undefined) {
      if (frame) this.#takeAnswer(frame);
    } else if (frame.id !== undefined) {
      this.#asked.add(frame.id);
      void this.#reply(frame.id, frame.method as keyof ReverseRequests, frame.params);
    } else {
      this.#notified(frame.method, frame.params);
    }
  }

  #notified(name: string, params: unknown): void {
    if (name === "session.event") {
      this.#listener.event(params as SessionEventParams);
    } else if (name === "session.status") {
      const { sessionId, status } = params as SessionStatusParams;
      if (status === "idle") this.#listener.idle(sessionId);
    } else if (name === "request.cancelled") {
      this.#asked.delete((params as RequestCancelled).id);
    }
  }

  #takeAnswer(frame: Frame): void {
    const waiting = this.#waiting.get(frame.id as number);
    this.#waiting.delete(frame.id as number);
    if (frame.error) waiting?.reject(new RpcError(frame.error.code, frame.error.message));
    else waiting?.resolve(frame.result);
  }

  /** Answers a request of the runtime, unless it has lost interest meanwhile. */
  async #reply(id: unknown, name: keyof ReverseRequests, params: unknown): Promise<void> {
    let answer: object;
    try {
      answer = { result: await this.#listener.answer(name, params as never) };
    } catch (error) {
      answer = { error: { code: -32603, message: String(error) } };
    }
    if (this.#asked.delete(id)) this.#send({ jsonrpc: "2.0", id, ...answer });
  }
}

function parse(line: string): Frame | undefined {
  try {
    const frame: unknown = JSON.parse(line);
    return typeof frame === "object" && frame !== null ? (frame as Frame) : undefined;
  } catch {
    return undefined;
  }
}

/** Whether something is done in time. */
export async function within(done: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  const timer = new AbortController();
  const late = delay(timeoutMs, false, { signal: timer.signal }).catch(() => false);
  try {
    return await Promise.race([done.then(() => true), late]);
  } finally {
    timer.abort();
  }
}
