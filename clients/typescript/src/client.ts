// A runtime: its process, what it asks for, and its sessions.

import { randomUUID } from "node:crypto";
import { resolve } from "node:path";

import { Connection } from "./connection.js";
import type {
  Answer,
  ApprovalParams,
  ApprovalResult,
  InitializeParams,
  InitializeResult,
  ListedSession,
  PermissionMode,
  QuestionParams,
  ReverseRequests,
} from "./protocol.js";
import { Session } from "./session.js";

/**
 * What may be answered to a call that needs leave: yes or no, a text for the model that comes with a no, or the
 * protocol's own object.
 */
export type Approval = boolean | string | ApprovalResult;

export interface LorimerOptions {
  /** The program and its arguments; more of them go behind `sdk`. By default `["lorimer", "sdk"]`. */
  command?: readonly string[];
  /** The workspace of new sessions, by default the current folder. */
  cwd?: string;
  /** By default what is configured, as with the next four. */
  provider?: string;
  model?: string;
  reasoningEffort?: string;
  maxTokens?: number;
  permissionMode?: PermissionMode;
  /** Whether a call may run. Without it nobody is asked, and the answer is no; so it is when it throws. */
  onApproval?: (request: ApprovalParams) => Approval | Promise<Approval>;
  /**
   * Answers to the model's questions, one a question in their order; undefined when the person does not want to answer.
   * Without it the model has no tool to ask with.
   */
  onQuestion?: (request: QuestionParams) => Answer[] | undefined | Promise<Answer[] | undefined>;
  /** The environment of the process, by default the own one. */
  env?: NodeJS.ProcessEnv;
  /** How long starting may take, 60 s by default. */
  startTimeoutMs?: number;
  /** How long each step of closing may take, 5 s by default. */
  closeTimeoutMs?: number;
}

/** Agents in a process of their own. */
export class Lorimer implements AsyncDisposable {
  readonly #connection: Connection;
  readonly #options: LorimerOptions;
  readonly #sessions = new Map<string, Session>();
  #info!: InitializeResult;

  private constructor(options: LorimerOptions) {
    this.#options = options;
    this.#connection = new Connection(options.command ?? ["lorimer", "sdk"], options.env, {
      event: ({ sessionId, event }) => this.#sessions.get(sessionId)?.tell((turn) => turn.event(event)),
      idle: (sessionId) => this.#sessions.get(sessionId)?.tell((turn) => turn.idle()),
      answer: (name, params) => this.#answer(name, params),
      ended: (error) => this.#sessions.forEach((session) => session.tell((turn) => turn.fail(error))),
    });
  }

  /** Starts the process. Rejects when that fails or its settings cannot be used, and leaves no process then. */
  static async start(options: LorimerOptions = {}): Promise<Lorimer> {
    const lorimer = new Lorimer(options);
    try {
      const timeoutMs = options.startTimeoutMs ?? 60_000;
      lorimer.#info = await lorimer.#connection.request("initialize", settings(options), { timeoutMs });
    } catch (error) {
      await lorimer.close();
      throw error;
    }
    return lorimer;
  }

  /** What the runtime said of itself when it was started. */
  get info(): InitializeResult {
    return this.#info;
  }

  /** The process. */
  get pid(): number | undefined {
    return this.#connection.pid;
  }

  /** Ends all sessions and the process, which is reaped when this is done. May be called again. */
  async close(): Promise<void> {
    await this.#connection.close(this.#options.closeTimeoutMs ?? 5_000);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** A new session. It is stored with its first message, which fails when the id is taken. */
  session(id: string = randomUUID()): Session {
    let session = this.#sessions.get(id);
    if (!session) {
      session = new Session(this.#connection, id);
      this.#sessions.set(id, session);
    }
    return session;
  }

  /** Opens a stored session. Rejects with `RpcError` when there is none, or when it is open already. */
  async resume(id: string): Promise<Session> {
    await this.#connection.request("session/resume", { sessionId: id });
    return this.session(id);
  }

  /** Stored sessions, the newest activity first; only those of one workspace when `cwd` is given. */
  async list(cwd?: string): Promise<ListedSession[]> {
    const params = cwd === undefined ? {} : { cwd: resolve(cwd) };
    return (await this.#connection.request("session/list", params)).sessions;
  }

  /** Stores a new session that begins like another one, up to a turn, and gives its id; resume it to go on. */
  async fork(id: string, turn?: number): Promise<string> {
    const params = turn === undefined ? { sessionId: id } : { sessionId: id, turn };
    return (await this.#connection.request("session/fork", params)).sessionId;
  }

  /** Deletes a stored session with all its files. */
  async delete(id: string): Promise<void> {
    await this.#connection.request("session/delete", { sessionId: id });
  }

  async #answer<Name extends keyof ReverseRequests>(
    name: Name,
    params: ReverseRequests[Name]["params"],
  ): Promise<ApprovalResult | { answers: Answer[] }> {
    const { onApproval, onQuestion } = this.#options;
    if (name === "approval/request" && onApproval) {
      return approval(await onApproval(params as ApprovalParams));
    }
    if (name === "question/ask" && onQuestion) {
      const answers = await onQuestion(params as QuestionParams);
      if (!answers) throw new Error("the person does not want to answer");
      return { answers };
    }
    throw new Error(`nobody here answers ${name}`);
  }
}

function settings(options: LorimerOptions): InitializeParams {
  const { provider, model, reasoningEffort, maxTokens, permissionMode } = options;
  const params = {
    cwd: resolve(options.cwd ?? "."),
    provider,
    model,
    reasoningEffort,
    maxTokens,
    permissionMode,
    capabilities: { approvals: options.onApproval !== undefined, questions: options.onQuestion !== undefined },
  };
  // JSON leaves out what is undefined.
  return params as InitializeParams;
}

function approval(answer: Approval): ApprovalResult {
  if (typeof answer === "string") return { outcome: "rejected", message: answer };
  if (typeof answer === "object" && answer !== null) return answer;
  // Anything that is not plainly a yes is a no.
  return { outcome: answer === true ? "allowed-once" : "rejected" };
}
