// Drives Lorimer agents: a process of `lorimer sdk`, sessions in it, and turns in these.

export { Lorimer, type Approval, type LorimerOptions } from "./client.js";
export { LorimerError, RpcError, RunTimeout, RuntimeClosed, TurnFailed } from "./errors.js";
export type * from "./protocol.js";
export { Session, Turn } from "./session.js";
export type { Input, ResultOptions, RunResult, StopReason, TurnOptions } from "./session.js";
