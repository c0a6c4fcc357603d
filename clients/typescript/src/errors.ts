// What goes wrong, by type.

import type { RunResult } from "./session.js";

/** Anything that this package throws of its own. */
export class LorimerError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** The runtime refused a request, and says why. */
export class RpcError extends LorimerError {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

/**
 * The runtime has ended, or could not be reached any more. `exitCode` or `signal` say how, as far as it is known, and
 * `stderr` holds the last lines it wrote there.
 */
export class RuntimeClosed extends LorimerError {
  constructor(
    readonly exitCode: number | null,
    readonly signal: string | null,
    readonly stderr: readonly string[],
    why = "the runtime has ended",
  ) {
    const status = signal !== null ? ` (${signal})` : exitCode !== null ? ` (exit code ${exitCode})` : "";
    super([why + status, ...stderr.slice(-5)].join("\n  "));
  }
}

/** A turn did not end with an answer. `result` is what there is of it. */
export class TurnFailed extends LorimerError {
  constructor(readonly result: RunResult) {
    const detail = result.error ? `: ${result.error.code}: ${result.error.message}` : "";
    super(`the turn ended without an answer (${result.stopReason})${detail}`);
  }
}

/** Something took longer than it was given. A turn was cancelled then, and `result` is what there is of it. */
export class RunTimeout extends LorimerError {
  constructor(
    what: string,
    readonly timeoutMs: number,
    readonly result?: RunResult,
  ) {
    super(`${what} took longer than ${timeoutMs} ms`);
  }
}
