// Drives Lorimer agents: a process of `lorimer sdk`, sessions in it, and turns in these.

export { Lorimer, type Approval, type LorimerOptions } from "./client.js";
export { LorimerError, RpcError, RunTimeout, RuntimeClosed, TurnFailed } from "./errors.js";
export type * from "./protocol.js";
export { Session, Turn, type Input, type ResultOptions, type RunResult, type StopReason, type TurnOptions } from "./session.js";
