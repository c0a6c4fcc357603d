# Generated from the Rust types of crates/rpc; do not edit. To write it anew:
#   LORIMER_UPDATE_CLIENTS=1 cargo test -p lorimer-rpc --test clients

"""The protocol's types.

Objects are plain dictionaries. They may have members that are not listed here.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Dict, List, Literal, TypedDict, Union

if sys.version_info >= (3, 11):
    from typing import NotRequired
elif TYPE_CHECKING:
    from typing_extensions import NotRequired

#: Stands for every tag that is not known here: with `str` in its place a union would not narrow.
OtherTag = Literal["(other)"]


class AbortCauseUser(TypedDict):
    """The person."""

    kind: Literal["user"]


class AbortCauseParent(TypedDict):
    """The agent that delegated."""

    kind: Literal["parent"]


class AbortCauseHook(TypedDict):
    """A hook."""

    kind: Literal["hook"]
    #: In the hook's words.
    reason: str


class AbortCauseDisposed(TypedDict):
    """The host shut down."""

    kind: Literal["disposed"]


class AbortCauseLegacy(TypedDict):
    """A log of an older writer."""

    kind: Literal["legacy"]


class AdapterDefaults(TypedDict):
    """Config fields that the adapter filled in; each `true` or absent."""

    #: The effort is the adapter's default.
    reasoningEffort: NotRequired[bool]
    #: The output limit is the adapter's default.
    maxTokens: NotRequired[bool]


class Answer(TypedDict):
    """One answer. Nothing selected and no words: the question was skipped."""

    #: The question.
    id: str
    #: Labels of what was chosen.
    selected: NotRequired[List[str]]
    #: Words of the person's own.
    custom: NotRequired[str]


class ApprovalAsked(TypedDict):
    """`approval/asked`"""

    #: Pairs the question with its answer.
    id: str
    #: The tool.
    toolName: str
    #: The call.
    callId: NotRequired[CallId]
    #: Why it is asked.
    reason: NotRequired[str]


class ApprovalDecided(TypedDict):
    """`approval/decided`"""

    #: The question.
    id: str
    #: How it ended.
    outcome: ApprovalOutcome


class ApprovalParams(TypedDict):
    """A call that a person has to allow."""

    #: The session that asks.
    sessionId: SessionId
    #: The call.
    callId: CallId
    #: The tool.
    toolName: str
    #: Why it is asked.
    reason: NotRequired[str]
    #: The whole arguments.
    arguments: Dict[str, Any]
    #: The call as a card.
    view: NotRequired[CallView]


class ApprovalResult(TypedDict):
    """A person's decision."""

    #: Yes or no.
    outcome: ApprovalDecision
    #: What the model reads with a no.
    message: NotRequired[str]


class AssistantChunk(TypedDict):
    """`assistant/chunk`"""

    #: The open turn.
    turn: int
    #: The open step.
    step: int
    #: What was streamed.
    chunk: StreamChunk


class AssistantMessage(TypedDict):
    """`assistant/message`"""

    #: The open turn.
    turn: int
    #: The open step.
    step: int
    #: The reply.
    message: Message
    #: Token counts.
    usage: NotRequired[TokenUsage]
    #: `true` when a cancellation cut it.
    interrupted: NotRequired[bool]


class CallConfig(TypedDict):
    """Route and sampling of a request."""

    #: Provider route id.
    provider: str
    #: Model id.
    model: str
    #: Effort id.
    reasoningEffort: NotRequired[str]
    #: Sampling temperature.
    temperature: NotRequired[float]
    #: Output limit in tokens.
    maxTokens: NotRequired[int]
    #: Stop sequences.
    stop: NotRequired[List[str]]


class CallViewGeneric(TypedDict):
    """Title and kind, with whatever is known."""

    card: Literal["generic"]
    #: One line.
    title: str
    #: Kind of work.
    kind: NotRequired[ToolCallKind]
    #: The interesting input.
    rawInput: NotRequired[Any]
    #: Content to show while pending.
    content: NotRequired[List[ContentBlock]]
    #: Where it works.
    locations: NotRequired[List[FileLocation]]


class CallViewTerminal(TypedDict):
    """A command."""

    card: Literal["terminal"]
    #: The command.
    title: str
    #: What it is for.
    description: NotRequired[str]
    #: Where it runs.
    cwd: NotRequired[str]


class CallViewDiff(TypedDict):
    """A change."""

    card: Literal["diff"]
    #: One line.
    title: str
    #: What is asked to change.
    diffs: List[FileDiff]
    #: Where it works.
    locations: NotRequired[List[FileLocation]]


class CancelResult(TypedDict):
    """What there was to cancel."""

    #: Whether a turn was running.
    cancelled: bool


class ClientCapabilities(TypedDict):
    """Which requests of the server a client answers. What is not declared is never sent, and counts as a
    no.
    """

    #: `approval/request`
    approvals: NotRequired[bool]
    #: `question/ask`: with it the model has the tool `ask_user_question`.
    questions: NotRequired[bool]


class CompactionPrune(TypedDict):
    """`compaction/prune`: the next event replaces a tool result by a shorter one."""

    #: First and last shadowed seq.
    shadowedRange: SeqRange
    #: All shadowed seqs.
    shadowedSeqs: List[int]
    #: Their estimated tokens.
    shadowedTokenCount: int


class Empty(TypedDict):
    """Nothing."""



class EndSeed(TypedDict):
    """`session/end-seed`: what came before was inherited or restored."""



class ErrorInfo(TypedDict):
    """A typed error's name and code."""

    #: `FsError`, `ToolArgsError`, ….
    name: str
    #: `FS_NOT_FOUND`, `INVALID_ARGS`, ….
    code: str


class Failure(TypedDict):
    """A failed request in the provider's words."""

    #: For a person.
    message: str
    #: For a program: `AUTH`, `RATE_LIMIT`, `STREAM_CLOSED`, ….
    code: str
    #: HTTP status, 100–599.
    status: NotRequired[int]
    #: How long the provider asks to wait, in milliseconds.
    providerRetryAfterMs: NotRequired[int]
    #: The provider's id of the request.
    requestId: NotRequired[str]


class FileDiff(TypedDict):
    """One hunk of a change."""

    #: The path as the call gave it.
    path: str
    #: Context and removed lines; null when there were none.
    oldText: Union[str, None]
    #: Context and added lines.
    newText: str
    #: First line of `oldText` in the file before, 1-based.
    oldStart: NotRequired[int]
    #: First line of `newText` in the file after, 1-based.
    newStart: NotRequired[int]


class FileLocation(TypedDict):
    """A place in a file."""

    #: The path as the call gave it.
    path: str
    #: Line, 1-based.
    line: NotRequired[int]


class FinishReasonStop(TypedDict):
    """The model is done."""

    kind: Literal["stop"]


class FinishReasonToolCalls(TypedDict):
    """The model waits for tool results."""

    kind: Literal["tool-calls"]


class FinishReasonMaxTokens(TypedDict):
    """The output limit was reached."""

    kind: Literal["max-tokens"]


class FinishReasonAborted(TypedDict):
    """The caller cancelled."""

    kind: Literal["aborted"]
    #: What is known of it.
    failure: Failure


class FinishReasonError(TypedDict):
    """The request failed."""

    kind: Literal["error"]
    #: What is known of it.
    failure: Failure


class ForkParams(TypedDict):
    """Where a fork begins to differ."""

    #: The session to begin like.
    sessionId: SessionId
    #: The last turn to keep; everything when left out, as long as no turn is running.
    turn: NotRequired[int]


class ForkResult(TypedDict):
    """A new session."""

    #: Its id.
    sessionId: SessionId


class FsObservationPresent(TypedDict):
    """It was there in this version."""

    kind: Literal["present"]
    #: `dev:ino:size:mtimeNs:ctimeNs`.
    version: str


class FsObservationAbsent(TypedDict):
    """It was not there."""

    kind: Literal["absent"]


class FsObserved(TypedDict):
    """`lorimer/fs-observed`: the model has seen (or not found) a file. DSH keeps this in memory only; as
    an event it survives a resume.
    """

    #: The file's real path (of the nearest existing ancestor plus the rest, when it is missing).
    targetKey: str
    #: What was seen.
    observation: FsObservation


class ImageBlock(TypedDict):
    """The fields of an `image` block."""

    type: Literal["image"]
    #: `{attachmentId, mediaType, bytes, width, height, name?, originalDimensions?}`.
    attachment: Any


class InboxSpliced(TypedDict):
    """`agent/inbox/spliced`"""

    #: Which list.
    target: InboxTarget
    #: Where.
    start: int
    #: How many left; absent when none.
    removedCount: NotRequired[int]
    #: What came in.
    inserted: List[Message]
    #: `canceled` when the removed were discarded rather than claimed.
    outcome: NotRequired[InboxOutcome]


class InitializeParams(TypedDict):
    """Where and with which model sessions work."""

    #: The workspace; relative to the process's own directory, which it is when left out.
    cwd: NotRequired[str]
    #: Provider route id; the configured one when left out.
    provider: NotRequired[str]
    #: Model id at the provider; the provider's first when left out.
    model: NotRequired[str]
    #: Effort id; the model's default when left out.
    reasoningEffort: NotRequired[str]
    #: Output limit in tokens, a positive integer; the model's default when left out.
    maxTokens: NotRequired[int]
    #: What agents may change; the configured mode when left out.
    permissionMode: NotRequired[PermissionMode]
    #: Which requests of the server the client answers.
    capabilities: NotRequired[ClientCapabilities]


class InitializeResult(TypedDict):
    """Who serves."""

    #: The protocol's identity, as DSH's server gives it.
    serverInfo: ServerInfo
    #: The program behind it, and what it has settled on.
    runtime: RuntimeInfo


class ListParams(TypedDict):
    """Which sessions."""

    #: Only those of this workspace, an absolute path.
    cwd: NotRequired[str]


class ListResult(TypedDict):
    """Stored sessions."""

    #: The newest activity first.
    sessions: List[ListedSession]


class ListedSession(TypedDict):
    """A stored session."""

    #: Its id.
    sessionId: SessionId
    #: Its workspace.
    cwd: NotRequired[str]
    #: Its title.
    title: NotRequired[str]
    #: What it was forked from.
    parentSessionId: NotRequired[SessionId]
    #: When it was created, epoch milliseconds.
    createdAtMs: int
    #: Last write, epoch milliseconds.
    updatedAtMs: int
    #: Size of its log in bytes.
    sizeBytes: int
    #: Whether it is open in this process.
    open: bool


class LlmRetry(TypedDict):
    """`llm/retry`: a failed request will be repeated after a wait."""

    #: Names the retry.
    retryId: str
    #: The open turn.
    turn: int
    #: The open step.
    step: int
    #: Provider route id.
    provider: str
    #: Whether retries are bounded.
    mode: RetryMode
    #: The bound, for `normal`.
    maxRetries: NotRequired[int]
    #: Identifies the policy that decided.
    policyKey: str
    #: 1-based count.
    retry: int
    #: The wait in milliseconds.
    delayMs: int
    #: Why.
    failure: Failure


class LlmRetryStarted(TypedDict):
    """`llm/retry-started`: the wait is over."""

    #: Names the retry.
    retryId: str
    #: The open turn.
    turn: int
    #: The open step.
    step: int
    #: 1-based count.
    retry: int


class Message(TypedDict):
    """One message of the conversation. Immutable once made."""

    #: UUID v4, except for synthetic messages.
    id: MessageId
    #: Who speaks.
    role: Role
    #: The blocks.
    content: List[ContentBlock]
    #: Where it came from.
    source: Source


class PromptParams(TypedDict):
    """A message for a session."""

    #: The session. An id that is new creates it; one that is stored but not open here is refused.
    sessionId: SessionId
    #: The message.
    contentBlocks: List[ContentBlock]
    #: When the agent gets it.
    delivery: NotRequired[Delivery]


class PromptResult(TypedDict):
    """A message's receipt."""

    #: The message's id in `agent/inbox/spliced`, which was notified before.
    messageId: MessageId


class Question(TypedDict):
    """One question."""

    #: Names the question in the answer; no two questions share one.
    id: str
    #: The question itself.
    question: str
    #: Two or three words over it.
    header: NotRequired[str]
    #: What can be chosen; the person can always answer in words of their own instead. Left out: only
    #: words.
    options: NotRequired[List[QuestionOption]]
    #: Whether several options can be chosen.
    multi_select: NotRequired[bool]


class QuestionOption(TypedDict):
    """One choice."""

    #: What is chosen; no two options of a question share one.
    label: str
    #: What choosing it means.
    description: NotRequired[str]


class QuestionParams(TypedDict):
    """Questions of a model."""

    #: The session that asks.
    sessionId: SessionId
    #: The call.
    callId: CallId
    #: The questions.
    questions: List[Question]
    #: Why the answer before this one did not fit.
    problem: NotRequired[str]


class QuestionResult(TypedDict):
    """Answers of a person."""

    #: One a question, in the same order.
    answers: List[Answer]


class ReasoningBlock(TypedDict):
    """The fields of a `reasoning` block."""

    type: Literal["reasoning"]
    #: The reasoning text; may be empty when the provider streamed the field empty.
    text: str


class RequestCancelled(TypedDict):
    """`request.cancelled`"""

    #: The server's request.
    id: str


class RequestContext(TypedDict):
    """`request/context`"""

    #: Provider route id.
    provider: str
    #: Model id.
    model: str
    #: The model's window in tokens.
    contextWindow: NotRequired[int]


class RequestHeader(TypedDict):
    """Model, sampling, system prompt and tools of a request."""

    #: Route and sampling.
    config: CallConfig
    #: Which config fields the adapter filled in.
    adapterDefaults: NotRequired[AdapterDefaults]
    #: The system prompt; absent when empty.
    system: NotRequired[str]
    #: The tools that are offered; absent when there are none.
    tools: NotRequired[List[ToolSpec]]


class RequestHeaderEvent(TypedDict):
    """`request/header`"""

    #: What every request sends beside its messages.
    header: RequestHeader
    #: Why it is logged.
    reason: RequestHeaderReason


class RuntimeInfo(TypedDict):
    """The program, and what sessions will work with."""

    #: `lorimer`
    name: str
    #: The program's version.
    version: str
    #: The workspace, an absolute path.
    cwd: str
    #: Provider route id.
    provider: str
    #: Model id.
    model: str
    #: What agents may change.
    permissionMode: PermissionMode


class SandboxModeEvent(TypedDict):
    """`sandbox/mode`"""

    #: The mode from here on.
    mode: PermissionMode
    #: `delegation` when inherited.
    source: NotRequired[str]


class SeqRange(TypedDict):
    """First and last seq, both included."""

    #: First.
    start: int
    #: Last.
    end: int


class ServerInfo(TypedDict):
    """The protocol's identity."""

    #: The protocol's name.
    name: str
    #: The protocol's version.
    version: str


class SessionEventParams(TypedDict):
    """`session.event`"""

    #: The session.
    sessionId: SessionId
    #: The event, exactly as it is in the log.
    event: SessionEvent


class SessionParams(TypedDict):
    """One session."""

    #: The session.
    sessionId: SessionId


class SessionStatusParams(TypedDict):
    """`session.status`"""

    #: The session.
    sessionId: SessionId
    #: What it does.
    status: SessionState


class SessionTitle(TypedDict):
    """`session/title`: the latest wins."""

    #: The title.
    title: str
    #: Events it was made from.
    messageSeqs: List[int]
    #: Who made it.
    source: TitleSource


class SetWorkingDirectoryParams(TypedDict):
    """A session and a directory."""

    #: The session. An id that is new creates it.
    sessionId: SessionId
    #: The directory; a relative path starts at the current one.
    path: str


class SourceUser(TypedDict):
    """Typed by a person."""

    kind: Literal["user"]


class SourcePlugin(TypedDict):
    """Made by a part of the harness."""

    kind: Literal["plugin"]
    #: Which part.
    plugin: str


class SourceModel(TypedDict):
    """Said by a model."""

    kind: Literal["model"]
    #: Provider route id.
    provider: str
    #: Model id.
    model: str
    #: Opaque adapter data for lossless continuation.
    replayState: NotRequired[Any]


class SourceTool(TypedDict):
    """Returned by a tool call."""

    kind: Literal["tool"]
    #: The call.
    callId: CallId


class StepEnd(TypedDict):
    """`step/end`"""

    #: The open turn.
    turn: int
    #: The open step.
    step: int


class StepStart(TypedDict):
    """`step/start`"""

    #: The open turn.
    turn: int
    #: 1-based within the turn.
    step: int


class StreamChunkBlockStart(TypedDict):
    """A block opens."""

    type: Literal["block-start"]
    #: Block index; blocks are ordered by first appearance.
    index: int
    #: `text`, `reasoning`, `tool-call`, ….
    blockType: str


class StreamChunkTextDelta(TypedDict):
    """More text."""

    type: Literal["text-delta"]
    #: Block index.
    index: int
    #: The piece.
    text: str


class StreamChunkReasoningDelta(TypedDict):
    """More reasoning."""

    type: Literal["reasoning-delta"]
    #: Block index.
    index: int
    #: The piece.
    text: str


class StreamChunkToolCallDelta(TypedDict):
    """More of a tool call's arguments."""

    type: Literal["tool-call-delta"]
    #: Block index.
    index: int
    #: Call id; the last one wins.
    id: CallId
    #: Tool name when known.
    name: NotRequired[str]
    #: The piece of raw JSON.
    argumentsDelta: str


class StreamChunkBlockEnd(TypedDict):
    """A block closes; its content is authoritative."""

    type: Literal["block-end"]
    #: Block index.
    index: int
    #: The whole block.
    block: ContentBlock


class StreamChunkUsage(TypedDict):
    """Token counts of this reply."""

    type: Literal["usage"]
    #: The counts.
    usage: TokenUsage


class StreamChunkFinish(TypedDict):
    """The reply ended."""

    type: Literal["finish"]
    #: How.
    reason: FinishReason
    #: Opaque adapter data for lossless continuation.
    replayState: NotRequired[Any]


class SurfaceReplacement(TypedDict):
    """An event that takes the place of earlier ones in the conversation."""

    op: Literal["replace"]
    #: First shadowed seq.
    start: int
    #: Last shadowed seq, included.
    end: int


class TextBlock(TypedDict):
    """The fields of a `text` block."""

    type: Literal["text"]
    #: The text.
    text: str


class TitleSourceFallback(TypedDict):
    """The first words of the first message."""

    kind: Literal["fallback"]


class TitleSourceUser(TypedDict):
    """The person."""

    kind: Literal["user"]


class TitleSourceProvider(TypedDict):
    """A title provider."""

    kind: Literal["provider"]
    #: Its id.
    provider: str
    #: `{provider, model}` of the call.
    model: NotRequired[Any]


class TodoItem(TypedDict):
    """One item of the todo list."""

    #: What is to be done.
    content: str
    #: How far it is.
    status: TodoStatus


class TodoWrite(TypedDict):
    """`todo/write`"""

    #: The whole list.
    todos: List[TodoItem]


class TokenUsage(TypedDict):
    """Token counts. The parts are disjoint: `inputTokens` leaves out what the cache served."""

    #: Prompt tokens not read from a cache.
    inputTokens: int
    #: Generated tokens, reasoning included.
    outputTokens: int
    #: Prompt tokens read from a cache.
    cacheReadTokens: NotRequired[int]
    #: Prompt tokens written to a cache.
    cacheWriteTokens: NotRequired[int]
    #: The reasoning part of `outputTokens`.
    reasoningTokens: NotRequired[int]


class ToolCall(TypedDict):
    """`tool/call`"""

    #: The open turn.
    turn: int
    #: The open step.
    step: int
    #: The call.
    callId: CallId
    #: The tool's name as the model wrote it.
    name: str
    #: The raw text of the arguments.
    arguments: str


class ToolCallBlock(TypedDict):
    """The fields of a `tool-call` block."""

    type: Literal["tool-call"]
    #: The call's id.
    id: CallId
    #: The tool's name as the model wrote it.
    name: str
    #: The raw JSON text exactly as the model sent it.
    arguments: str


class ToolResult(TypedDict):
    """`tool/result`"""

    #: The open turn.
    turn: int
    #: The open step.
    step: int
    #: A user message with exactly one `tool-result` block.
    message: Message
    #: Only for typed errors.
    error: NotRequired[ErrorInfo]
    #: What the tool keeps for its card.
    meta: NotRequired[Any]


class ToolResultBlock(TypedDict):
    """The fields of a `tool-result` block."""

    type: Literal["tool-result"]
    #: The call that is answered.
    toolCallId: CallId
    #: What the model is shown.
    content: List[ContentBlock]
    #: Whether the call failed; always present on results made live.
    isError: NotRequired[bool]


class ToolSpec(TypedDict):
    """What the model is told of one tool."""

    #: The name it is called by.
    name: str
    #: What it does.
    description: str
    #: JSON Schema of its arguments.
    parameters: Any


class TurnEnd(TypedDict):
    """`turn/end`"""

    #: The open turn.
    turn: int
    #: Why it ended.
    reason: TurnEndReason


class TurnEndReasonCompleted(TypedDict):
    """The model finished."""

    kind: Literal["completed"]


class TurnEndReasonBlocked(TypedDict):
    """The input was refused."""

    kind: Literal["blocked"]


class TurnEndReasonMaxTokens(TypedDict):
    """The output limit cut the answer."""

    kind: Literal["max-tokens"]


class TurnEndReasonInterrupted(TypedDict):
    """Written by recovery: the process died."""

    kind: Literal["interrupted"]


class TurnEndReasonAborted(TypedDict):
    """Cancelled."""

    kind: Literal["aborted"]
    #: By whom.
    reason: AbortCause


class TurnEndReasonError(TypedDict):
    """Failed."""

    kind: Literal["error"]
    #: How.
    error: Failure


class TurnStart(TypedDict):
    """`turn/start`"""

    #: 1-based, increasing by one.
    turn: int


class WorkingDirectory(TypedDict):
    """Where relative paths and commands start."""

    #: An absolute path.
    cwd: str


class WorkingDirectoryChange(TypedDict):
    """`working-directory/change`: where relative paths and commands start from here on. A type of a later
    DSH, so it is written as ignorable.
    """

    #: An absolute path.
    cwd: str


class ContentBlockOther(TypedDict):
    """A block of another type, or one that is malformed for its type: kept verbatim, and skipped by
    serializers.
    """

    type: OtherTag


class SourceOther(TypedDict):
    """Any other kind (`agent-instructions`, `goal`, `subagent-report`, …), verbatim."""

    kind: OtherTag


class StreamChunkOther(TypedDict):
    """Anything else, verbatim."""

    type: OtherTag


class TurnEndReasonOther(TypedDict):
    """A reason of a later version, verbatim."""

    kind: OtherTag


#: Who cancelled a turn. Tagged by `kind`.
#: Tell them apart by "kind".
AbortCause = Union[
    "AbortCauseUser",
    "AbortCauseParent",
    "AbortCauseHook",
    "AbortCauseDisposed",
    "AbortCauseLegacy",
]

#: Yes or no.
#: - "allowed-once": Yes, this once.
#: - "rejected": No.
ApprovalDecision = Literal["allowed-once", "rejected"]

#: How a question ended.
#: - "allowed-once": Yes, this once.
#: - "rejected": No.
#: - "cancelled": The question was withdrawn.
#: - "unavailable": There is nobody to ask.
ApprovalOutcome = Literal["allowed-once", "rejected", "cancelled", "unavailable"]

#: Names one tool call; issued by the provider, unique within a step.
CallId = str

#: A pending call. Tagged by `card`.
#: Tell them apart by "card".
CallView = Union[
    "CallViewGeneric",
    "CallViewTerminal",
    "CallViewDiff",
]

#: One piece of a message. Tagged by `type`.
#: Tell them apart by "type".
ContentBlock = Union[
    "TextBlock",
    "ReasoningBlock",
    "ImageBlock",
    "ToolCallBlock",
    "ToolResultBlock",
    "ContentBlockOther",
]

#: When an agent gets a message.
#: - "next-turn": In a turn of its own, after those that wait.
#: - "next-step": With the next step of the running turn; without one, in a turn of its own.
Delivery = Literal["next-turn", "next-step"]

#: How a reply ended. Tagged by `kind`.
#: Tell them apart by "kind".
FinishReason = Union[
    "FinishReasonStop",
    "FinishReasonToolCalls",
    "FinishReasonMaxTokens",
    "FinishReasonAborted",
    "FinishReasonError",
]

#: What was seen of a file. Tagged by `kind`.
#: Tell them apart by "kind".
FsObservation = Union[
    "FsObservationPresent",
    "FsObservationAbsent",
]

#: What became of removed inbox messages.
#: - "canceled": Thrown away.
InboxOutcome = Literal["canceled"]

#: The two lists of the inbox.
#: - "next-turn": Opens a turn of its own.
#: - "next-step": Enters the running turn at its next step.
InboxTarget = Literal["next-turn", "next-step"]

#: Names one message; a UUID v4 except for synthetic recovery messages.
MessageId = str

#: What the agent may change.
#: - "read-only": Nothing.
#: - "workspace-write": Files of the workspace and of temporary folders.
#: - "danger-full-access": Anything the person may.
PermissionMode = Literal["read-only", "workspace-write", "danger-full-access"]

#: Why a request header is logged.
#: - "initial": First of the session.
#: - "resume": First of this process.
#: - "change": It differs from the last.
RequestHeaderReason = Literal["initial", "resume", "change"]

#: Whether retries are bounded.
#: - "normal": Up to a count.
#: - "always": Until success or cancellation.
RetryMode = Literal["normal", "always"]

#: Who speaks. A tool result is a `user` message.
#: - "system": Instructions of the harness.
#: - "user": The person, the harness on the person's behalf, or a tool.
#: - "assistant": The model.
Role = Literal["system", "user", "assistant"]

#: Names one session; a UUID v4 when we mint it.
SessionId = str

#: What a session does.
#: - "running": It works.
#: - "idle": It has nothing left to do.
SessionState = Literal["running", "idle"]

#: Where a message came from. Tagged by `kind`; unknown kinds are kept verbatim.
#: Tell them apart by "kind".
Source = Union[
    "SourceUser",
    "SourcePlugin",
    "SourceModel",
    "SourceTool",
    "SourceOther",
]

#: One streamed piece. Tagged by `type`. Usage comes before finish; nothing follows finish.
#: Tell them apart by "type".
StreamChunk = Union[
    "StreamChunkBlockStart",
    "StreamChunkTextDelta",
    "StreamChunkReasoningDelta",
    "StreamChunkToolCallDelta",
    "StreamChunkBlockEnd",
    "StreamChunkUsage",
    "StreamChunkFinish",
    "StreamChunkOther",
]

#: Who made a title. Tagged by `kind`.
#: Tell them apart by "kind".
TitleSource = Union[
    "TitleSourceFallback",
    "TitleSourceUser",
    "TitleSourceProvider",
]

#: How far a todo item is.
#: - "pending": Not begun.
#: - "in_progress": Being worked on.
#: - "completed": Done.
TodoStatus = Literal["pending", "in_progress", "completed"]

#: What kind of work a call does, for an icon.
#: - "read": Reads something.
#: - "edit": Changes something.
#: - "delete": Removes something.
#: - "move": Moves something.
#: - "search": Looks for something.
#: - "execute": Runs something.
#: - "fetch": Fetches something.
#: - "other": Anything else.
ToolCallKind = Literal["read", "edit", "delete", "move", "search", "execute", "fetch", "other"]

#: Why a turn ended. Tagged by `kind`.
#: Tell them apart by "kind".
TurnEndReason = Union[
    "TurnEndReasonCompleted",
    "TurnEndReasonBlocked",
    "TurnEndReasonMaxTokens",
    "TurnEndReasonInterrupted",
    "TurnEndReasonAborted",
    "TurnEndReasonError",
    "TurnEndReasonOther",
]


class EventEnvelope(TypedDict):
    """What every event has beside its type and its payload."""

    #: Position in the log, contiguous from 0.
    seq: int
    #: Epoch milliseconds.
    time: int
    #: Earlier events that this one is made of.
    sourceEventSeqs: NotRequired[List[int]]
    #: How it enters the conversation: at its end, or in place of earlier events. Absent when it does not.
    surfaceOp: NotRequired[Union[Literal["append"], SurfaceReplacement]]
    #: A reader that does not know the type may skip it.
    ignorable: NotRequired[bool]


class SessionEventTurnStart(EventEnvelope):
    """An event `turn/start`."""

    type: Literal["turn/start"]
    data: TurnStart


class SessionEventTurnEnd(EventEnvelope):
    """An event `turn/end`."""

    type: Literal["turn/end"]
    data: TurnEnd


class SessionEventStepStart(EventEnvelope):
    """An event `step/start`."""

    type: Literal["step/start"]
    data: StepStart


class SessionEventStepEnd(EventEnvelope):
    """An event `step/end`."""

    type: Literal["step/end"]
    data: StepEnd


class SessionEventUserMessage(EventEnvelope):
    """An event `user/message`."""

    type: Literal["user/message"]
    data: Message


class SessionEventAssistantChunk(EventEnvelope):
    """An event `assistant/chunk`."""

    type: Literal["assistant/chunk"]
    data: AssistantChunk


class SessionEventAssistantMessage(EventEnvelope):
    """An event `assistant/message`."""

    type: Literal["assistant/message"]
    data: AssistantMessage


class SessionEventToolCall(EventEnvelope):
    """An event `tool/call`."""

    type: Literal["tool/call"]
    data: ToolCall


class SessionEventToolResult(EventEnvelope):
    """An event `tool/result`."""

    type: Literal["tool/result"]
    data: ToolResult


class SessionEventTodoWrite(EventEnvelope):
    """An event `todo/write`."""

    type: Literal["todo/write"]
    data: TodoWrite


class SessionEventRequestHeader(EventEnvelope):
    """An event `request/header`."""

    type: Literal["request/header"]
    data: RequestHeaderEvent


class SessionEventRequestContext(EventEnvelope):
    """An event `request/context`."""

    type: Literal["request/context"]
    data: RequestContext


class SessionEventSessionEndSeed(EventEnvelope):
    """An event `session/end-seed`."""

    type: Literal["session/end-seed"]
    data: EndSeed


class SessionEventAgentInboxSpliced(EventEnvelope):
    """An event `agent/inbox/spliced`."""

    type: Literal["agent/inbox/spliced"]
    data: InboxSpliced


class SessionEventLlmRetry(EventEnvelope):
    """An event `llm/retry`."""

    type: Literal["llm/retry"]
    data: LlmRetry


class SessionEventLlmRetryStarted(EventEnvelope):
    """An event `llm/retry-started`."""

    type: Literal["llm/retry-started"]
    data: LlmRetryStarted


class SessionEventCompactionPrune(EventEnvelope):
    """An event `compaction/prune`."""

    type: Literal["compaction/prune"]
    data: CompactionPrune


class SessionEventSessionTitle(EventEnvelope):
    """An event `session/title`."""

    type: Literal["session/title"]
    data: SessionTitle


class SessionEventSandboxMode(EventEnvelope):
    """An event `sandbox/mode`."""

    type: Literal["sandbox/mode"]
    data: SandboxModeEvent


class SessionEventApprovalAsked(EventEnvelope):
    """An event `approval/asked`."""

    type: Literal["approval/asked"]
    data: ApprovalAsked


class SessionEventApprovalDecided(EventEnvelope):
    """An event `approval/decided`."""

    type: Literal["approval/decided"]
    data: ApprovalDecided


class SessionEventWorkingDirectoryChange(EventEnvelope):
    """An event `working-directory/change`."""

    type: Literal["working-directory/change"]
    data: WorkingDirectoryChange


class SessionEventLorimerFsObserved(EventEnvelope):
    """An event `lorimer/fs-observed`."""

    type: Literal["lorimer/fs-observed"]
    data: FsObserved


class SessionEventOther(EventEnvelope):
    """An event of any other type."""

    type: OtherTag
    data: Any


#: One event of a session's log. Tell them apart by "type".
SessionEvent = Union[
    "SessionEventTurnStart",
    "SessionEventTurnEnd",
    "SessionEventStepStart",
    "SessionEventStepEnd",
    "SessionEventUserMessage",
    "SessionEventAssistantChunk",
    "SessionEventAssistantMessage",
    "SessionEventToolCall",
    "SessionEventToolResult",
    "SessionEventTodoWrite",
    "SessionEventRequestHeader",
    "SessionEventRequestContext",
    "SessionEventSessionEndSeed",
    "SessionEventAgentInboxSpliced",
    "SessionEventLlmRetry",
    "SessionEventLlmRetryStarted",
    "SessionEventCompactionPrune",
    "SessionEventSessionTitle",
    "SessionEventSandboxMode",
    "SessionEventApprovalAsked",
    "SessionEventApprovalDecided",
    "SessionEventWorkingDirectoryChange",
    "SessionEventLorimerFsObserved",
    "SessionEventOther",
]

#: What a client asks for:
#: - "initialize" (InitializeParams -> InitializeResult): Says where and with which model sessions of
#: this process work. Comes first.
#: - "session/prompt" (PromptParams -> PromptResult): Queues a message, and creates the session when
#: its id is new. Answers before the work begins; events tell the rest.
#: - "session/resume" (SessionParams -> Empty): Opens a stored session without new input. An
#: interrupted turn is closed first.
#: - "session/working-directory/get" (SessionParams -> WorkingDirectory): Where relative paths and
#: commands of a session start. Creates the session when its id is new.
#: - "session/working-directory/set" (SetWorkingDirectoryParams -> WorkingDirectory): Lets a session
#: work in another directory; permissions and running processes stay as they are.
#: - "session/cancel" (SessionParams -> CancelResult): Ends the running turn of an open session and
#: throws away what is queued; what was streamed is kept.
#: - "session/close" (SessionParams -> Empty): Ends a session's work and gives its log free for others.
#: It can be resumed.
#: - "session/list" (ListParams -> ListResult): Stored sessions, the newest activity first.
#: - "session/fork" (ForkParams -> ForkResult): A new stored session that begins like another one;
#: resume it to go on. Its parent may be open.
#: - "session/delete" (SessionParams -> Empty): Deletes a stored session with all its files. One that
#: is open here is closed first.
#: - "shutdown" (Empty -> Empty): Ends all sessions in an orderly way, answers, and ends the process.
Request = Literal[
    "initialize",
    "session/prompt",
    "session/resume",
    "session/working-directory/get",
    "session/working-directory/set",
    "session/cancel",
    "session/close",
    "session/list",
    "session/fork",
    "session/delete",
    "shutdown",
]

#: What the server asks for:
#: - "approval/request" (ApprovalParams -> ApprovalResult): Asks whether a call may run. An error, or
#: an answer of another shape, is a no.
#: - "question/ask" (QuestionParams -> QuestionResult): Puts questions of the model to the person. An
#: error means that the person does not want to answer.
ReverseRequest = Literal[
    "approval/request",
    "question/ask",
]

#: What the server tells:
#: - "session.event" (SessionEventParams): An event was appended to the log of a session.
#: - "session.status" (SessionStatusParams): A session began to work, or has nothing left to do.
#: - "request.cancelled" (RequestCancelled): A request of the server needs no answer any more.
Notification = Literal[
    "session.event",
    "session.status",
    "request.cancelled",
]
