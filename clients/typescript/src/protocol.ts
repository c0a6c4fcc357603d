// Generated from the Rust types of crates/rpc; do not edit. To write it anew:
//   LORIMER_UPDATE_CLIENTS=1 cargo test -p lorimer-rpc --test clients

/**
 * Stands for every tag that is not known here. TypeScript has no type for "any other string", and with `string` in its
 * place a union would not narrow. To compare such a tag with a text of your own, write `tag as string`.
 */
export type OtherTag = "(other)";

/** The person. */
export interface AbortCauseUser {
  kind: "user";
}

/** The agent that delegated. */
export interface AbortCauseParent {
  kind: "parent";
}

/** A hook. */
export interface AbortCauseHook {
  kind: "hook";

  /** In the hook's words. */
  reason: string;
}

/** The host shut down. */
export interface AbortCauseDisposed {
  kind: "disposed";
}

/** A log of an older writer. */
export interface AbortCauseLegacy {
  kind: "legacy";
}

/** Who cancelled a turn. Tagged by `kind`. */
export type AbortCause =
  | AbortCauseUser
  | AbortCauseParent
  | AbortCauseHook
  | AbortCauseDisposed
  | AbortCauseLegacy;

/** Config fields that the adapter filled in; each `true` or absent. */
export interface AdapterDefaults {
  /** The effort is the adapter's default. */
  reasoningEffort?: boolean;

  /** The output limit is the adapter's default. */
  maxTokens?: boolean;
}

/** One answer. Nothing selected and no words: the question was skipped. */
export interface Answer {
  /** The question. */
  id: string;

  /** Labels of what was chosen. */
  selected?: string[];

  /** Words of the person's own. */
  custom?: string;
}

/** `approval/asked` */
export interface ApprovalAsked {
  /** Pairs the question with its answer. */
  id: string;

  /** The tool. */
  toolName: string;

  /** The call. */
  callId?: CallId;

  /** Why it is asked. */
  reason?: string;
}

/** `approval/decided` */
export interface ApprovalDecided {
  /** The question. */
  id: string;

  /** How it ended. */
  outcome: ApprovalOutcome;
}

/**
 * Yes or no.
 * - `allowed-once`: Yes, this once.
 * - `rejected`: No.
 */
export type ApprovalDecision = "allowed-once" | "rejected";

/**
 * How a question ended.
 * - `allowed-once`: Yes, this once.
 * - `rejected`: No.
 * - `cancelled`: The question was withdrawn.
 * - `unavailable`: There is nobody to ask.
 */
export type ApprovalOutcome = "allowed-once" | "rejected" | "cancelled" | "unavailable";

/** A call that a person has to allow. */
export interface ApprovalParams {
  /** The session that asks. */
  sessionId: SessionId;

  /** The call. */
  callId: CallId;

  /** The tool. */
  toolName: string;

  /** Why it is asked. */
  reason?: string;

  /** The whole arguments. */
  arguments: Record<string, unknown>;

  /** The call as a card. */
  view?: CallView;
}

/** A person's decision. */
export interface ApprovalResult {
  /** Yes or no. */
  outcome: ApprovalDecision;

  /** What the model reads with a no. */
  message?: string;
}

/** `assistant/chunk` */
export interface AssistantChunk {
  /** The open turn. */
  turn: number;

  /** The open step. */
  step: number;

  /** What was streamed. */
  chunk: StreamChunk;
}

/** `assistant/message` */
export interface AssistantMessage {
  /** The open turn. */
  turn: number;

  /** The open step. */
  step: number;

  /** The reply. */
  message: Message;

  /** Token counts. */
  usage?: TokenUsage;

  /** `true` when a cancellation cut it. */
  interrupted?: boolean;
}

/** Route and sampling of a request. */
export interface CallConfig {
  /** Provider route id. */
  provider: string;

  /** Model id. */
  model: string;

  /** Effort id. */
  reasoningEffort?: string;

  /** Sampling temperature. */
  temperature?: number;

  /** Output limit in tokens. */
  maxTokens?: number;

  /** Stop sequences. */
  stop?: string[];
}

/** Names one tool call; issued by the provider, unique within a step. */
export type CallId = string;

/** Title and kind, with whatever is known. */
export interface CallViewGeneric {
  card: "generic";

  /** One line. */
  title: string;

  /** Kind of work. */
  kind?: ToolCallKind;

  /** The interesting input. */
  rawInput?: unknown;

  /** Content to show while pending. */
  content?: ContentBlock[];

  /** Where it works. */
  locations?: FileLocation[];
}

/** A command. */
export interface CallViewTerminal {
  card: "terminal";

  /** The command. */
  title: string;

  /** What it is for. */
  description?: string;

  /** Where it runs. */
  cwd?: string;
}

/** A change. */
export interface CallViewDiff {
  card: "diff";

  /** One line. */
  title: string;

  /** What is asked to change. */
  diffs: FileDiff[];

  /** Where it works. */
  locations?: FileLocation[];
}

/** A pending call. Tagged by `card`. */
export type CallView =
  | CallViewGeneric
  | CallViewTerminal
  | CallViewDiff;

/** What there was to cancel. */
export interface CancelResult {
  /** Whether a turn was running. */
  cancelled: boolean;
}

/**
 * Which requests of the server a client answers. What is not declared is never sent, and counts as a
 * no.
 */
export interface ClientCapabilities {
  /** `approval/request` */
  approvals?: boolean;

  /** `question/ask`: with it the model has the tool `ask_user_question`. */
  questions?: boolean;
}

/** `compaction/prune`: the next event replaces a tool result by a shorter one. */
export interface CompactionPrune {
  /** First and last shadowed seq. */
  shadowedRange: SeqRange;

  /** All shadowed seqs. */
  shadowedSeqs: number[];

  /** Their estimated tokens. */
  shadowedTokenCount: number;
}

/**
 * A block of another type, or one that is malformed for its type: kept verbatim, and skipped by
 * serializers.
 */
export interface ContentBlockOther {
  type: OtherTag;
  [member: string]: unknown;
}

/** One piece of a message. Tagged by `type`. */
export type ContentBlock =
  | TextBlock
  | ReasoningBlock
  | ImageBlock
  | ToolCallBlock
  | ToolResultBlock
  | ContentBlockOther;

/**
 * When an agent gets a message.
 * - `next-turn`: In a turn of its own, after those that wait.
 * - `next-step`: With the next step of the running turn; without one, in a turn of its own.
 */
export type Delivery = "next-turn" | "next-step";

/** Nothing. */
export interface Empty {}

/** `session/end-seed`: what came before was inherited or restored. */
export interface EndSeed {}

/** A typed error's name and code. */
export interface ErrorInfo {
  /** `FsError`, `ToolArgsError`, …. */
  name: string;

  /** `FS_NOT_FOUND`, `INVALID_ARGS`, …. */
  code: string;
}

/** A failed request in the provider's words. */
export interface Failure {
  /** For a person. */
  message: string;

  /** For a program: `AUTH`, `RATE_LIMIT`, `STREAM_CLOSED`, …. */
  code: string;

  /** HTTP status, 100–599. */
  status?: number;

  /** How long the provider asks to wait, in milliseconds. */
  providerRetryAfterMs?: number;

  /** The provider's id of the request. */
  requestId?: string;
}

/** One hunk of a change. */
export interface FileDiff {
  /** The path as the call gave it. */
  path: string;

  /** Context and removed lines; null when there were none. */
  oldText: string | null;

  /** Context and added lines. */
  newText: string;

  /** First line of `oldText` in the file before, 1-based. */
  oldStart?: number;

  /** First line of `newText` in the file after, 1-based. */
  newStart?: number;
}

/** A place in a file. */
export interface FileLocation {
  /** The path as the call gave it. */
  path: string;

  /** Line, 1-based. */
  line?: number;
}

/** The model is done. */
export interface FinishReasonStop {
  kind: "stop";
}

/** The model waits for tool results. */
export interface FinishReasonToolCalls {
  kind: "tool-calls";
}

/** The output limit was reached. */
export interface FinishReasonMaxTokens {
  kind: "max-tokens";
}

/** The caller cancelled. */
export interface FinishReasonAborted {
  kind: "aborted";

  /** What is known of it. */
  failure: Failure;
}

/** The request failed. */
export interface FinishReasonError {
  kind: "error";

  /** What is known of it. */
  failure: Failure;
}

/** How a reply ended. Tagged by `kind`. */
export type FinishReason =
  | FinishReasonStop
  | FinishReasonToolCalls
  | FinishReasonMaxTokens
  | FinishReasonAborted
  | FinishReasonError;

/** Where a fork begins to differ. */
export interface ForkParams {
  /** The session to begin like. */
  sessionId: SessionId;

  /** The last turn to keep; everything when left out, as long as no turn is running. */
  turn?: number;
}

/** A new session. */
export interface ForkResult {
  /** Its id. */
  sessionId: SessionId;
}

/** It was there in this version. */
export interface FsObservationPresent {
  kind: "present";

  /** `dev:ino:size:mtimeNs:ctimeNs`. */
  version: string;
}

/** It was not there. */
export interface FsObservationAbsent {
  kind: "absent";
}

/** What was seen of a file. Tagged by `kind`. */
export type FsObservation =
  | FsObservationPresent
  | FsObservationAbsent;

/**
 * `lorimer/fs-observed`: the model has seen (or not found) a file. DSH keeps this in memory only; as
 * an event it survives a resume.
 */
export interface FsObserved {
  /** The file's real path (of the nearest existing ancestor plus the rest, when it is missing). */
  targetKey: string;

  /** What was seen. */
  observation: FsObservation;
}

/** The fields of an `image` block. */
export interface ImageBlock {
  type: "image";

  /** `{attachmentId, mediaType, bytes, width, height, name?, originalDimensions?}`. */
  attachment: unknown;
}

/**
 * What became of removed inbox messages.
 * - `canceled`: Thrown away.
 */
export type InboxOutcome = "canceled";

/** `agent/inbox/spliced` */
export interface InboxSpliced {
  /** Which list. */
  target: InboxTarget;

  /** Where. */
  start: number;

  /** How many left; absent when none. */
  removedCount?: number;

  /** What came in. */
  inserted: Message[];

  /** `canceled` when the removed were discarded rather than claimed. */
  outcome?: InboxOutcome;
}

/**
 * The two lists of the inbox.
 * - `next-turn`: Opens a turn of its own.
 * - `next-step`: Enters the running turn at its next step.
 */
export type InboxTarget = "next-turn" | "next-step";

/** Where and with which model sessions work. */
export interface InitializeParams {
  /** The workspace; relative to the process's own directory, which it is when left out. */
  cwd?: string;

  /** Provider route id; the configured one when left out. */
  provider?: string;

  /** Model id at the provider; the provider's first when left out. */
  model?: string;

  /** Effort id; the model's default when left out. */
  reasoningEffort?: string;

  /** Output limit in tokens, a positive integer; the model's default when left out. */
  maxTokens?: number;

  /** What agents may change; the configured mode when left out. */
  permissionMode?: PermissionMode;

  /** Which requests of the server the client answers. */
  capabilities?: ClientCapabilities;
}

/** Who serves. */
export interface InitializeResult {
  /** The protocol's identity, as DSH's server gives it. */
  serverInfo: ServerInfo;

  /** The program behind it, and what it has settled on. */
  runtime: RuntimeInfo;
}

/** Which sessions. */
export interface ListParams {
  /** Only those of this workspace, an absolute path. */
  cwd?: string;
}

/** Stored sessions. */
export interface ListResult {
  /** The newest activity first. */
  sessions: ListedSession[];
}

/** A stored session. */
export interface ListedSession {
  /** Its id. */
  sessionId: SessionId;

  /** Its workspace. */
  cwd?: string;

  /** Its title. */
  title?: string;

  /** What it was forked from. */
  parentSessionId?: SessionId;

  /** When it was created, epoch milliseconds. */
  createdAtMs: number;

  /** Last write, epoch milliseconds. */
  updatedAtMs: number;

  /** Size of its log in bytes. */
  sizeBytes: number;

  /** Whether it is open in this process. */
  open: boolean;
}

/** `llm/retry`: a failed request will be repeated after a wait. */
export interface LlmRetry {
  /** Names the retry. */
  retryId: string;

  /** The open turn. */
  turn: number;

  /** The open step. */
  step: number;

  /** Provider route id. */
  provider: string;

  /** Whether retries are bounded. */
  mode: RetryMode;

  /** The bound, for `normal`. */
  maxRetries?: number;

  /** Identifies the policy that decided. */
  policyKey: string;

  /** 1-based count. */
  retry: number;

  /** The wait in milliseconds. */
  delayMs: number;

  /** Why. */
  failure: Failure;
}

/** `llm/retry-started`: the wait is over. */
export interface LlmRetryStarted {
  /** Names the retry. */
  retryId: string;

  /** The open turn. */
  turn: number;

  /** The open step. */
  step: number;

  /** 1-based count. */
  retry: number;
}

/** One message of the conversation. Immutable once made. */
export interface Message {
  /** UUID v4, except for synthetic messages. */
  id: MessageId;

  /** Who speaks. */
  role: Role;

  /** The blocks. */
  content: ContentBlock[];

  /** Where it came from. */
  source: Source;
}

/** Names one message; a UUID v4 except for synthetic recovery messages. */
export type MessageId = string;

/**
 * What the agent may change.
 * - `read-only`: Nothing.
 * - `workspace-write`: Files of the workspace and of temporary folders.
 * - `danger-full-access`: Anything the person may.
 */
export type PermissionMode = "read-only" | "workspace-write" | "danger-full-access";

/** A message for a session. */
export interface PromptParams {
  /** The session. An id that is new creates it; one that is stored but not open here is refused. */
  sessionId: SessionId;

  /** The message. */
  contentBlocks: ContentBlock[];

  /** When the agent gets it. */
  delivery?: Delivery;
}

/** A message's receipt. */
export interface PromptResult {
  /** The message's id in `agent/inbox/spliced`, which was notified before. */
  messageId: MessageId;
}

/** One question. */
export interface Question {
  /** Names the question in the answer; no two questions share one. */
  id: string;

  /** The question itself. */
  question: string;

  /** Two or three words over it. */
  header?: string;

  /**
   * What can be chosen; the person can always answer in words of their own instead. Left out: only
   * words.
   */
  options?: QuestionOption[];

  /** Whether several options can be chosen. */
  multi_select?: boolean;
}

/** One choice. */
export interface QuestionOption {
  /** What is chosen; no two options of a question share one. */
  label: string;

  /** What choosing it means. */
  description?: string;
}

/** Questions of a model. */
export interface QuestionParams {
  /** The session that asks. */
  sessionId: SessionId;

  /** The call. */
  callId: CallId;

  /** The questions. */
  questions: Question[];

  /** Why the answer before this one did not fit. */
  problem?: string;
}

/** Answers of a person. */
export interface QuestionResult {
  /** One a question, in the same order. */
  answers: Answer[];
}

/** The fields of a `reasoning` block. */
export interface ReasoningBlock {
  type: "reasoning";

  /** The reasoning text; may be empty when the provider streamed the field empty. */
  text: string;
}

/** `request.cancelled` */
export interface RequestCancelled {
  /** The server's request. */
  id: string;
}

/** `request/context` */
export interface RequestContext {
  /** Provider route id. */
  provider: string;

  /** Model id. */
  model: string;

  /** The model's window in tokens. */
  contextWindow?: number;
}

/** Model, sampling, system prompt and tools of a request. */
export interface RequestHeader {
  /** Route and sampling. */
  config: CallConfig;

  /** Which config fields the adapter filled in. */
  adapterDefaults?: AdapterDefaults;

  /** The system prompt; absent when empty. */
  system?: string;

  /** The tools that are offered; absent when there are none. */
  tools?: ToolSpec[];
}

/** `request/header` */
export interface RequestHeaderEvent {
  /** What every request sends beside its messages. */
  header: RequestHeader;

  /** Why it is logged. */
  reason: RequestHeaderReason;
}

/**
 * Why a request header is logged.
 * - `initial`: First of the session.
 * - `resume`: First of this process.
 * - `change`: It differs from the last.
 */
export type RequestHeaderReason = "initial" | "resume" | "change";

/**
 * Whether retries are bounded.
 * - `normal`: Up to a count.
 * - `always`: Until success or cancellation.
 */
export type RetryMode = "normal" | "always";

/**
 * Who speaks. A tool result is a `user` message.
 * - `system`: Instructions of the harness.
 * - `user`: The person, the harness on the person's behalf, or a tool.
 * - `assistant`: The model.
 */
export type Role = "system" | "user" | "assistant";

/** The program, and what sessions will work with. */
export interface RuntimeInfo {
  /** `lorimer` */
  name: string;

  /** The program's version. */
  version: string;

  /** The workspace, an absolute path. */
  cwd: string;

  /** Provider route id. */
  provider: string;

  /** Model id. */
  model: string;

  /** What agents may change. */
  permissionMode: PermissionMode;
}

/** `sandbox/mode` */
export interface SandboxModeEvent {
  /** The mode from here on. */
  mode: PermissionMode;

  /** `delegation` when inherited. */
  source?: string;
}

/** First and last seq, both included. */
export interface SeqRange {
  /** First. */
  start: number;

  /** Last. */
  end: number;
}

/** The protocol's identity. */
export interface ServerInfo {
  /** The protocol's name. */
  name: string;

  /** The protocol's version. */
  version: string;
}

/** `session.event` */
export interface SessionEventParams {
  /** The session. */
  sessionId: SessionId;

  /** The event, exactly as it is in the log. */
  event: SessionEvent;
}

/** Names one session; a UUID v4 when we mint it. */
export type SessionId = string;

/** One session. */
export interface SessionParams {
  /** The session. */
  sessionId: SessionId;
}

/**
 * What a session does.
 * - `running`: It works.
 * - `idle`: It has nothing left to do.
 */
export type SessionState = "running" | "idle";

/** `session.status` */
export interface SessionStatusParams {
  /** The session. */
  sessionId: SessionId;

  /** What it does. */
  status: SessionState;
}

/** `session/title`: the latest wins. */
export interface SessionTitle {
  /** The title. */
  title: string;

  /** Events it was made from. */
  messageSeqs: number[];

  /** Who made it. */
  source: TitleSource;
}

/** A session and a directory. */
export interface SetWorkingDirectoryParams {
  /** The session. An id that is new creates it. */
  sessionId: SessionId;

  /** The directory; a relative path starts at the current one. */
  path: string;
}

/** Typed by a person. */
export interface SourceUser {
  kind: "user";
}

/** Made by a part of the harness. */
export interface SourcePlugin {
  kind: "plugin";

  /** Which part. */
  plugin: string;
}

/** Said by a model. */
export interface SourceModel {
  kind: "model";

  /** Provider route id. */
  provider: string;

  /** Model id. */
  model: string;

  /** Opaque adapter data for lossless continuation. */
  replayState?: unknown;
}

/** Returned by a tool call. */
export interface SourceTool {
  kind: "tool";

  /** The call. */
  callId: CallId;
}

/** Any other kind (`agent-instructions`, `goal`, `subagent-report`, …), verbatim. */
export interface SourceOther {
  kind: OtherTag;
  [member: string]: unknown;
}

/** Where a message came from. Tagged by `kind`; unknown kinds are kept verbatim. */
export type Source =
  | SourceUser
  | SourcePlugin
  | SourceModel
  | SourceTool
  | SourceOther;

/** `step/end` */
export interface StepEnd {
  /** The open turn. */
  turn: number;

  /** The open step. */
  step: number;
}

/** `step/start` */
export interface StepStart {
  /** The open turn. */
  turn: number;

  /** 1-based within the turn. */
  step: number;
}

/** A block opens. */
export interface StreamChunkBlockStart {
  type: "block-start";

  /** Block index; blocks are ordered by first appearance. */
  index: number;

  /** `text`, `reasoning`, `tool-call`, …. */
  blockType: string;
}

/** More text. */
export interface StreamChunkTextDelta {
  type: "text-delta";

  /** Block index. */
  index: number;

  /** The piece. */
  text: string;
}

/** More reasoning. */
export interface StreamChunkReasoningDelta {
  type: "reasoning-delta";

  /** Block index. */
  index: number;

  /** The piece. */
  text: string;
}

/** More of a tool call's arguments. */
export interface StreamChunkToolCallDelta {
  type: "tool-call-delta";

  /** Block index. */
  index: number;

  /** Call id; the last one wins. */
  id: CallId;

  /** Tool name when known. */
  name?: string;

  /** The piece of raw JSON. */
  argumentsDelta: string;
}

/** A block closes; its content is authoritative. */
export interface StreamChunkBlockEnd {
  type: "block-end";

  /** Block index. */
  index: number;

  /** The whole block. */
  block: ContentBlock;
}

/** Token counts of this reply. */
export interface StreamChunkUsage {
  type: "usage";

  /** The counts. */
  usage: TokenUsage;
}

/** The reply ended. */
export interface StreamChunkFinish {
  type: "finish";

  /** How. */
  reason: FinishReason;

  /** Opaque adapter data for lossless continuation. */
  replayState?: unknown;
}

/** Anything else, verbatim. */
export interface StreamChunkOther {
  type: OtherTag;
  [member: string]: unknown;
}

/** One streamed piece. Tagged by `type`. Usage comes before finish; nothing follows finish. */
export type StreamChunk =
  | StreamChunkBlockStart
  | StreamChunkTextDelta
  | StreamChunkReasoningDelta
  | StreamChunkToolCallDelta
  | StreamChunkBlockEnd
  | StreamChunkUsage
  | StreamChunkFinish
  | StreamChunkOther;

/** An event that takes the place of earlier ones in the conversation. */
export interface SurfaceReplacement {
  op: "replace";

  /** First shadowed seq. */
  start: number;

  /** Last shadowed seq, included. */
  end: number;
}

/** The fields of a `text` block. */
export interface TextBlock {
  type: "text";

  /** The text. */
  text: string;
}

/** The first words of the first message. */
export interface TitleSourceFallback {
  kind: "fallback";
}

/** The person. */
export interface TitleSourceUser {
  kind: "user";
}

/** A title provider. */
export interface TitleSourceProvider {
  kind: "provider";

  /** Its id. */
  provider: string;

  /** `{provider, model}` of the call. */
  model?: unknown;
}

/** Who made a title. Tagged by `kind`. */
export type TitleSource =
  | TitleSourceFallback
  | TitleSourceUser
  | TitleSourceProvider;

/** One item of the todo list. */
export interface TodoItem {
  /** What is to be done. */
  content: string;

  /** How far it is. */
  status: TodoStatus;
}

/**
 * How far a todo item is.
 * - `pending`: Not begun.
 * - `in_progress`: Being worked on.
 * - `completed`: Done.
 */
export type TodoStatus = "pending" | "in_progress" | "completed";

/** `todo/write` */
export interface TodoWrite {
  /** The whole list. */
  todos: TodoItem[];
}

/** Token counts. The parts are disjoint: `inputTokens` leaves out what the cache served. */
export interface TokenUsage {
  /** Prompt tokens not read from a cache. */
  inputTokens: number;

  /** Generated tokens, reasoning included. */
  outputTokens: number;

  /** Prompt tokens read from a cache. */
  cacheReadTokens?: number;

  /** Prompt tokens written to a cache. */
  cacheWriteTokens?: number;

  /** The reasoning part of `outputTokens`. */
  reasoningTokens?: number;
}

/** `tool/call` */
export interface ToolCall {
  /** The open turn. */
  turn: number;

  /** The open step. */
  step: number;

  /** The call. */
  callId: CallId;

  /** The tool's name as the model wrote it. */
  name: string;

  /** The raw text of the arguments. */
  arguments: string;
}

/** The fields of a `tool-call` block. */
export interface ToolCallBlock {
  type: "tool-call";

  /** The call's id. */
  id: CallId;

  /** The tool's name as the model wrote it. */
  name: string;

  /** The raw JSON text exactly as the model sent it. */
  arguments: string;
}

/**
 * What kind of work a call does, for an icon.
 * - `read`: Reads something.
 * - `edit`: Changes something.
 * - `delete`: Removes something.
 * - `move`: Moves something.
 * - `search`: Looks for something.
 * - `execute`: Runs something.
 * - `fetch`: Fetches something.
 * - `other`: Anything else.
 */
export type ToolCallKind = "read" | "edit" | "delete" | "move" | "search" | "execute" | "fetch" | "other";

/** `tool/result` */
export interface ToolResult {
  /** The open turn. */
  turn: number;

  /** The open step. */
  step: number;

  /** A user message with exactly one `tool-result` block. */
  message: Message;

  /** Only for typed errors. */
  error?: ErrorInfo;

  /** What the tool keeps for its card. */
  meta?: unknown;
}

/** The fields of a `tool-result` block. */
export interface ToolResultBlock {
  type: "tool-result";

  /** The call that is answered. */
  toolCallId: CallId;

  /** What the model is shown. */
  content: ContentBlock[];

  /** Whether the call failed; always present on results made live. */
  isError?: boolean;
}

/** What the model is told of one tool. */
export interface ToolSpec {
  /** The name it is called by. */
  name: string;

  /** What it does. */
  description: string;

  /** JSON Schema of its arguments. */
  parameters: unknown;
}

/** `turn/end` */
export interface TurnEnd {
  /** The open turn. */
  turn: number;

  /** Why it ended. */
  reason: TurnEndReason;
}

/** The model finished. */
export interface TurnEndReasonCompleted {
  kind: "completed";
}

/** The input was refused. */
export interface TurnEndReasonBlocked {
  kind: "blocked";
}

/** The output limit cut the answer. */
export interface TurnEndReasonMaxTokens {
  kind: "max-tokens";
}

/** Written by recovery: the process died. */
export interface TurnEndReasonInterrupted {
  kind: "interrupted";
}

/** Cancelled. */
export interface TurnEndReasonAborted {
  kind: "aborted";

  /** By whom. */
  reason: AbortCause;
}

/** Failed. */
export interface TurnEndReasonError {
  kind: "error";

  /** How. */
  error: Failure;
}

/** A reason of a later version, verbatim. */
export interface TurnEndReasonOther {
  kind: OtherTag;
  [member: string]: unknown;
}

/** Why a turn ended. Tagged by `kind`. */
export type TurnEndReason =
  | TurnEndReasonCompleted
  | TurnEndReasonBlocked
  | TurnEndReasonMaxTokens
  | TurnEndReasonInterrupted
  | TurnEndReasonAborted
  | TurnEndReasonError
  | TurnEndReasonOther;

/** `turn/start` */
export interface TurnStart {
  /** 1-based, increasing by one. */
  turn: number;
}

/** Where relative paths and commands start. */
export interface WorkingDirectory {
  /** An absolute path. */
  cwd: string;
}

/**
 * `working-directory/change`: where relative paths and commands start from here on. A type of a later
 * DSH, so it is written as ignorable.
 */
export interface WorkingDirectoryChange {
  /** An absolute path. */
  cwd: string;
}

/** What every event has beside its type and its payload. */
export interface EventEnvelope {
  /** Position in the log, contiguous from 0. */
  seq: number;

  /** Epoch milliseconds. */
  time: number;

  /** Earlier events that this one is made of. */
  sourceEventSeqs?: number[];

  /** How it enters the conversation: at its end, or in place of earlier events. Absent when it does not. */
  surfaceOp?: "append" | SurfaceReplacement;

  /** A reader that does not know the type may skip it. */
  ignorable?: boolean;
}

/** The payloads of events. */
export interface EventPayloads {
  "turn/start": TurnStart;
  "turn/end": TurnEnd;
  "step/start": StepStart;
  "step/end": StepEnd;
  "user/message": Message;
  "assistant/chunk": AssistantChunk;
  "assistant/message": AssistantMessage;
  "tool/call": ToolCall;
  "tool/result": ToolResult;
  "todo/write": TodoWrite;
  "request/header": RequestHeaderEvent;
  "request/context": RequestContext;
  "session/end-seed": EndSeed;
  "agent/inbox/spliced": InboxSpliced;
  "llm/retry": LlmRetry;
  "llm/retry-started": LlmRetryStarted;
  "compaction/prune": CompactionPrune;
  "session/title": SessionTitle;
  "sandbox/mode": SandboxModeEvent;
  "approval/asked": ApprovalAsked;
  "approval/decided": ApprovalDecided;
  "working-directory/change": WorkingDirectoryChange;
  "lorimer/fs-observed": FsObserved;
}

/** An event whose type is known here. */
export type KnownEvent = {
  [Type in keyof EventPayloads]: EventEnvelope & { type: Type; data: EventPayloads[Type] };
}[keyof EventPayloads];

/** An event of any other type. */
export interface OtherEvent extends EventEnvelope {
  type: OtherTag;
  data: unknown;
}

/** One event of a session's log. Tell them apart by `type`. */
export type SessionEvent = KnownEvent | OtherEvent;

/** What a client asks for. */
export interface Requests {
  /** Says where and with which model sessions of this process work. Comes first. */
  "initialize": { params: InitializeParams; result: InitializeResult };

  /**
   * Queues a message, and creates the session when its id is new. Answers before the work begins; events
   * tell the rest.
   */
  "session/prompt": { params: PromptParams; result: PromptResult };

  /** Opens a stored session without new input. An interrupted turn is closed first. */
  "session/resume": { params: SessionParams; result: Empty };

  /** Where relative paths and commands of a session start. Creates the session when its id is new. */
  "session/working-directory/get": { params: SessionParams; result: WorkingDirectory };

  /** Lets a session work in another directory; permissions and running processes stay as they are. */
  "session/working-directory/set": { params: SetWorkingDirectoryParams; result: WorkingDirectory };

  /** Ends the running turn of an open session and throws away what is queued; what was streamed is kept. */
  "session/cancel": { params: SessionParams; result: CancelResult };

  /** Ends a session's work and gives its log free for others. It can be resumed. */
  "session/close": { params: SessionParams; result: Empty };

  /** Stored sessions, the newest activity first. */
  "session/list": { params: ListParams; result: ListResult };

  /** A new stored session that begins like another one; resume it to go on. Its parent may be open. */
  "session/fork": { params: ForkParams; result: ForkResult };

  /** Deletes a stored session with all its files. One that is open here is closed first. */
  "session/delete": { params: SessionParams; result: Empty };

  /** Ends all sessions in an orderly way, answers, and ends the process. */
  "shutdown": { params: Empty; result: Empty };
}

/** What the server asks for. */
export interface ReverseRequests {
  /** Asks whether a call may run. An error, or an answer of another shape, is a no. */
  "approval/request": { params: ApprovalParams; result: ApprovalResult };

  /** Puts questions of the model to the person. An error means that the person does not want to answer. */
  "question/ask": { params: QuestionParams; result: QuestionResult };
}

/** What the server tells, with its parameters. */
export interface Notifications {
  /** An event was appended to the log of a session. */
  "session.event": SessionEventParams;

  /** A session began to work, or has nothing left to do. */
  "session.status": SessionStatusParams;

  /** A request of the server needs no answer any more. */
  "request.cancelled": RequestCancelled;
}
