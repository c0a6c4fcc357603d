"""Sessions, turns in them, and what these come to."""

from __future__ import annotations

import os
import queue
import threading
import time
import weakref
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union, cast

from .connection import Connection, Outcome
from .errors import RpcError, RunTimeout, RuntimeClosed, TurnFailed
from .protocol import ContentBlock, Failure, SessionEvent, TokenUsage

#: What a person says: plain text, or blocks.
Input = Union[str, List[ContentBlock]]

#: How long a cancelled turn may take to end before it is given up, in seconds.
CANCEL_GRACE = 10.0


@dataclass
class RunResult:
    """What a turn came to.

    `stop_reason` is "completed" when the model finished, otherwise "max-tokens", "aborted", "error", "blocked" or
    "interrupted" (it just stopped), or "discarded" when the message was thrown away before its turn began. Only with
    "completed" is `text` an answer; otherwise it is what there was of one.
    """

    session_id: str
    #: The last text of the model in this turn.
    text: str = ""
    stop_reason: str = "discarded"
    #: All events of the turn, in order.
    events: List[SessionEvent] = field(default_factory=list)
    #: Token counts of all requests of the turn together; None when the provider gave none.
    usage: Optional[TokenUsage] = None
    #: With "error": what the provider said.
    error: Optional[Failure] = None

    @property
    def ok(self) -> bool:
        """Whether `text` is an answer."""
        return self.stop_reason == "completed"

    def raise_for_status(self) -> "RunResult":
        """Raises `TurnFailed` unless `text` is an answer; returns the result itself."""
        if not self.ok:
            raise TurnFailed(self)
        return self

    def _add(self, event: Any) -> None:
        self.events.append(event)
        data = event["data"]
        if event["type"] == "assistant/message":
            blocks = data["message"]["content"]
            text = "".join(block["text"] for block in blocks if block.get("type") == "text")
            self.text = text if text.strip() else self.text
            if data.get("usage") is not None:
                self.usage = cast(TokenUsage, _sum(cast(Dict[str, int], self.usage or {}), data["usage"]))
        elif event["type"] == "turn/end":
            self.stop_reason = data["reason"]["kind"]
            self.error = data["reason"].get("error")


def _sum(one: Dict[str, int], other: Dict[str, int]) -> Dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


class Turn:
    """A turn as it happens: iterate over it for its events, then ask for its `result`.

    Once its message is queued nothing is lost by reading late, and a turn that nobody reads costs nothing but memory.
    """

    def __init__(self, session: "Session") -> None:
        self._session = session
        #: ("event", …), ("receipt", message id), ("idle", None) or ("end", error), in the order they were read.
        self._told: "queue.SimpleQueue[Tuple[str, Any]]" = queue.SimpleQueue()
        self._message_id: Optional[str] = None
        self._mine = False
        self._held: List[SessionEvent] = []
        self._ready: List[SessionEvent] = []
        self._ended = False
        self._failure: Optional[RuntimeClosed] = None
        self._result = RunResult(session.id)

    def __iter__(self) -> Iterator[SessionEvent]:
        while True:
            event = self._next(None)
            if event is None:
                return
            yield event

    def result(self, timeout: Optional[float] = None, check: bool = True) -> RunResult:
        """Waits for the end of the turn.

        A turn that did not end with an answer raises `TurnFailed`, or with `check=False` is returned like any other.
        One that takes longer than `timeout` seconds is cancelled, together with what is queued in its session, and
        raises `RunTimeout`.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            while self._next(deadline) is not None:
                pass
        except queue.Empty:
            self._cancel()
            raise RunTimeout(timeout or 0.0, self._result) from None
        return self._result.raise_for_status() if check else self._result

    def _cancel(self) -> None:
        deadline = time.monotonic() + CANCEL_GRACE
        try:
            self._session._request("session/cancel", timeout=CANCEL_GRACE)
            while self._next(deadline) is not None:
                pass
        except (queue.Empty, TimeoutError, RpcError):
            pass

    def _next(self, deadline: Optional[float]) -> Optional[SessionEvent]:
        """The next event of the turn, None after the last one. Raises `queue.Empty` at the deadline."""
        while not self._ready:
            if self._failure is not None:
                raise self._failure
            if self._ended:
                return None
            wait = None if deadline is None else max(0.0, deadline - time.monotonic())
            self._take(*self._told.get(timeout=wait))
        event = self._ready.pop(0)
        self._result._add(event)
        return event

    def _take(self, kind: str, value: Any) -> None:
        if kind == "end":
            self._failure = value
        elif kind == "receipt":
            self._message_id = value
        elif self._message_id is None:
            # What comes before the receipt is of turns before this one.
            pass
        elif kind == "idle":
            self._ended = True
        elif self._mine:
            self._ready.append(value)
            self._ended = value["type"] == "turn/end"
        else:
            self._wait_for_message(value)

    def _wait_for_message(self, event: SessionEvent) -> None:
        """A turn is this one from its start when the message is in it."""
        if event["type"] == "turn/start":
            self._held = []
        self._held.append(event)
        if event["type"] == "user/message" and event["data"].get("id") == self._message_id:
            self._mine = True
            self._result.stop_reason = "interrupted"
            self._ready, self._held = self._held, []

    def _told_outcome(self, outcome: Outcome) -> None:
        if outcome[1] is None:
            self._told.put(("receipt", outcome[0]["messageId"]))


class Session:
    """One conversation. As a context manager it is closed at the end; it stays stored and can be resumed."""

    def __init__(self, connection: Connection, session_id: str) -> None:
        self._connection = connection
        self.id = session_id
        self._lock = threading.Lock()
        self._turns: "weakref.WeakSet[Turn]" = weakref.WeakSet()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.close()
        except RuntimeClosed:
            pass

    def run(self, message: Input, timeout: Optional[float] = None, check: bool = True) -> RunResult:
        """Says something and waits for the answer. See `Turn.result`."""
        return self.stream(message).result(timeout, check)

    def stream(self, message: Input) -> Turn:
        """Says something, and returns the turn that it begins as soon as the message is stored."""
        turn = Turn(self)
        with self._lock:
            self._turns.add(turn)
        self._prompt(message, "next-turn", turn)
        return turn

    def steer(self, message: Input) -> None:
        """Says something to the running turn, which gets it with its next step; without one, in a turn of its own."""
        self._prompt(message, "next-step", None)

    def cancel(self) -> bool:
        """Ends the running turn and throws away what is queued. Returns whether a turn was running."""
        return bool(self._request("session/cancel")["cancelled"])

    def close(self) -> None:
        """Ends the session's work. A session that has never been spoken to has nothing to close."""
        self._request("session/close")

    @property
    def working_directory(self) -> str:
        """Where relative paths and commands start, an absolute path.

        May be set; a relative path starts at the current one.
        """
        return str(self._request("session/working-directory/get")["cwd"])

    @working_directory.setter
    def working_directory(self, path: Union[str, "os.PathLike[str]"]) -> None:
        self._request("session/working-directory/set", {"path": os.fspath(path)})

    def _prompt(self, message: Input, delivery: str, turn: Optional[Turn]) -> None:
        blocks: List[Any] = [{"type": "text", "text": message}] if isinstance(message, str) else message
        params = {"sessionId": self.id, "contentBlocks": blocks, "delivery": delivery}
        on_outcome = None if turn is None else turn._told_outcome
        self._connection.request("session/prompt", params, on_outcome=on_outcome)

    def _request(
        self, method: str, more: Optional[Dict[str, Any]] = None, timeout: Optional[float] = None
    ) -> Any:
        return self._connection.request(method, {"sessionId": self.id, **(more or {})}, timeout)

    def _tell(self, kind: str, value: Any) -> None:
        with self._lock:
            turns = list(self._turns)
        for turn in turns:
            turn._told.put((kind, value))
