// Sessions, turns in them, and what these come to.

import { within, type Connection } from "./connection.js";
import { RpcError, RunTimeout, RuntimeClosed, TurnFailed } from "./errors.js";
import type { ContentBlock, Delivery, Failure, SessionEvent, TokenUsage, TurnEndReason } from "./protocol.js";

/** What a person says: plain text, or blocks. */
export type Input = string | ContentBlock[];

/**
 * Why a turn ended: "completed" when the model finished, "interrupted" when it just stopped, "discarded" when its
 * message was thrown away before it began.
 */
export type StopReason = TurnEndReason["kind"] | "discarded";

/** What a turn came to. Only with the stop reason "completed" is `text` an answer, otherwise what there was of one. */
export interface RunResult {
  sessionId: string;
  /** The last text of the model in this turn. */
  text: string;
  stopReason: StopReason;
  /** All events of the turn, in order. */
  events: SessionEvent[];
  /** Token counts of all requests of the turn together, if the provider gave any. */
  usage?: TokenUsage;
  /** With "error": what the provider said. */
  error?: Failure;
}

export interface TurnOptions {
  /** Cancels the turn, together with what is queued in its session. */
  signal?: AbortSignal;
}

export interface ResultOptions {
  /** How long the turn may take from now on before it is cancelled, together with what is queued in its session. */
  timeoutMs?: number;
  /** With `false` a turn that ended without an answer is returned like any other instead of thrown as `TurnFailed`. */
  check?: boolean;
}

/** How long a cancelled turn may take to end before it is given up. */
const CANCEL_GRACE_MS = 10_000;

/** A turn as it happens: iterate over it for its events, then ask for its `result`. */
export class Turn implements AsyncIterable<SessionEvent> {
  readonly #session: Session;
  readonly #result: RunResult;
  readonly #ended: Promise<void>;
  #end!: () => void;
  #wake: (() => void) | undefined;
  #messageId: string | undefined;
  #mine = false;
  #done = false;
  #held: SessionEvent[] = [];
  #failure: RuntimeClosed | undefined;
  #signal: AbortSignal | undefined;
  readonly #onAbort = () => void this.#cancel();

  /** @internal */
  constructor(session: Session, signal: AbortSignal | undefined) {
    this.#session = session;
    this.#signal = signal;
    this.#result = { sessionId: session.id, text: "", stopReason: "discarded", events: [] };
    this.#ended = new Promise((resolve) => (this.#end = resolve));
  }

  /** The events of the turn from its beginning, each as soon as it is there. */
  async *[Symbol.asyncIterator](): AsyncGenerator<SessionEvent, void, void> {
    const events = this.#result.events;
    for (let next = 0; ; next++) {
      while (next >= events.length) {
        if (this.#failure) throw this.#failure;
        if (this.#done) return;
        await new Promise<void>((resolve) => {
          const others = this.#wake;
          this.#wake = () => (others?.(), resolve());
        });
      }
      yield events[next]!;
    }
  }

  /**
   * Waits for the end of the turn. Rejects with `TurnFailed` when it ended without an answer, with the signal's reason
   * when that has cancelled it, and with `RunTimeout`, after cancelling it, when it takes too long.
   */
  async result({ timeoutMs, check = true }: ResultOptions = {}): Promise<RunResult> {
    if (timeoutMs === undefined) {
      await this.#ended;
    } else if (!(await within(this.#ended, timeoutMs))) {
      await this.#cancel();
      if (this.#failure) throw this.#failure;
      throw new RunTimeout("the turn", timeoutMs, this.#result);
    }
    if (this.#failure) throw this.#failure;
    if (this.#result.stopReason !== "completed") {
      this.#signal?.throwIfAborted();
      if (check) throw new TurnFailed(this.#result);
    }
    return this.#result;
  }

  async #cancel(): Promise<void> {
    try {
      await this.#session.cancel();
      await within(this.#ended, CANCEL_GRACE_MS);
    } catch (error) {
      if (!(error instanceof RpcError) && !(error instanceof RuntimeClosed)) throw error;
    }
  }

  /** @internal The message is stored; what was told before is of other turns. */
  begin(messageId: string): void {
    this.#messageId = messageId;
    if (this.#signal?.aborted) this.#onAbort();
    else this.#signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** @internal */
  event(event: SessionEvent): void {
    if (this.#messageId === undefined || this.#done) return;
    if (this.#mine) return this.#add(event);
    if (event.type === "turn/start") this.#held = [];
    this.#held.push(event);
    if (event.type === "user/message" && event.data.id === this.#messageId) {
      this.#mine = true;
      this.#result.stopReason = "interrupted";
      this.#held.splice(0).forEach((held) => this.#add(held));
    }
  }

  /** @internal Nothing of the session waits any more. */
  idle(): void {
    if (this.#messageId !== undefined) this.#finish();
  }

  /** @internal */
  fail(error: RuntimeClosed): void {
    if (!this.#done) this.#failure = error;
    this.#finish();
  }

  #add(event: SessionEvent): void {
    const result = this.#result;
    result.events.push(event);
    if (event.type === "assistant/message") {
      const texts = event.data.message.content.map((block) => (block.type === "text" ? block.text : ""));
      const text = texts.join("");
      if (text.trim() !== "") result.text = text;
      if (event.data.usage) result.usage = sum(result.usage, event.data.usage);
    } else if (event.type === "turn/end") {
      const { reason } = event.data;
      result.stopReason = reason.kind;
      if (reason.kind === "error") result.error = reason.error;
      this.#finish();
    }
    this.#notify();
  }

  #finish(): void {
    this.#done = true;
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#session.forget(this);
    this.#end();
    this.#notify();
  }

  #notify(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}

/** One conversation. */
export class Session implements AsyncDisposable {
  readonly #connection: Connection;
  readonly #turns = new Set<Turn>();

  /** @internal */
  constructor(
    connection: Connection,
    readonly id: string,
  ) {
    this.#connection = connection;
  }

  /** Says something and waits for the answer. See `Turn.result`. */
  async run(message: Input, options: TurnOptions & ResultOptions = {}): Promise<RunResult> {
    return (await this.stream(message, options)).result(options);
  }

  /** Says something, and gives the turn that it begins as soon as the message is stored. */
  async stream(message: Input, { signal }: TurnOptions = {}): Promise<Turn> {
    signal?.throwIfAborted();
    const turn = new Turn(this, signal);
    this.#turns.add(turn);
    try {
      await this.#prompt(message, "next-turn", (messageId) => turn.begin(messageId));
    } catch (error) {
      this.#turns.delete(turn);
      throw error;
    }
    return turn;
  }

  /** Says something to the running turn, which gets it with its next step; without one, in a turn of its own. */
  async steer(message: Input): Promise<void> {
    await this.#prompt(message, "next-step");
  }

  /** Ends the running turn and throws away what is queued. Gives whether a turn was running. */
  async cancel(): Promise<boolean> {
    return (await this.#connection.request("session/cancel", { sessionId: this.id })).cancelled;
  }

  /** Where relative paths and commands start, an absolute path. */
  async workingDirectory(): Promise<string> {
    return (await this.#connection.request("session/working-directory/get", { sessionId: this.id })).cwd;
  }

  /** Lets the session work in another directory; a relative path starts at the current one. Gives the absolute path. */
  async setWorkingDirectory(path: string): Promise<string> {
    return (await this.#connection.request("session/working-directory/set", { sessionId: this.id, path })).cwd;
  }

  /** Ends the session's work. It stays stored and can be resumed. */
  async close(): Promise<void> {
    await this.#connection.request("session/close", { sessionId: this.id });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close().catch((error: unknown) => {
      if (!(error instanceof RuntimeClosed)) throw error;
    });
  }

  async #prompt(message: Input, delivery: Delivery, onStored?: (messageId: string) => void): Promise<void> {
    const contentBlocks: ContentBlock[] = typeof message === "string" ? [{ type: "text", text: message }] : message;
    const params = { sessionId: this.id, contentBlocks, delivery };
    await this.#connection.request("session/prompt", params, { onResult: (result) => onStored?.(result.messageId) });
  }

  /** @internal */
  forget(turn: Turn): void {
    this.#turns.delete(turn);
  }

  /** @internal Calls something for every turn that is waited for. */
  tell(each: (turn: Turn) => void): void {
    [...this.#turns].forEach(each);
  }
}

function sum(one: TokenUsage | undefined, other: TokenUsage): TokenUsage {
  const total: TokenUsage = { ...one, ...other };
  for (const name of Object.keys(total) as (keyof TokenUsage)[]) {
    total[name] = (one?.[name] ?? 0) + (other[name] ?? 0);
  }
  return total;
}
