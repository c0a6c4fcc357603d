"""A runtime: its process, what it asks for, and its sessions."""

from __future__ import annotations

import os
import threading
import uuid
import weakref
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union, cast

from .connection import Connection
from .errors import RuntimeClosed
from .protocol import (
    Answer,
    ApprovalParams,
    ApprovalResult,
    InitializeParams,
    InitializeResult,
    ListedSession,
    PermissionMode,
    QuestionParams,
)
from .session import Session

#: What may be answered to a call that needs leave: True or False, a text for the model that comes with a no, or the
#: protocol's own object.
Approval = Union[bool, str, ApprovalResult]


class Lorimer:
    """Agents in a process of their own. Use it as a context manager: `start` and `close` are its two ends.

    - `command`: the program and its arguments; more of them go behind `sdk`.
    - `cwd`: the workspace of new sessions, by default the current folder.
    - `provider`, `model`, `reasoning_effort`, `max_tokens`, `permission_mode`: by default what is configured.
    - `on_approval(request)`: whether a call may run, as `Approval`. Without it nobody is asked, and the answer is no.
    - `on_question(request)`: answers to the model's questions, one a question in their order; None when the person does
      not want to answer. Without it the model has no tool to ask with.
    - `env`: the environment of the process, by default the own one.
    - `start_timeout`, `close_timeout`: how long starting and each step of closing may take, in seconds.

    Callbacks run on threads of their own, several at once when several sessions ask. One that raises counts as a no.
    """

    def __init__(
        self,
        command: Sequence[str] = ("lorimer", "sdk"),
        *,
        cwd: Union[str, "os.PathLike[str]", None] = None,
        provider: Optional[str] = None,
        model: Optional[str] = None,
        reasoning_effort: Optional[str] = None,
        max_tokens: Optional[int] = None,
        permission_mode: Optional[PermissionMode] = None,
        on_approval: Optional[Callable[[ApprovalParams], Approval]] = None,
        on_question: Optional[Callable[[QuestionParams], Optional[List[Answer]]]] = None,
        env: Optional[Mapping[str, str]] = None,
        start_timeout: float = 60.0,
        close_timeout: float = 5.0,
    ) -> None:
        self._command = command
        self._env = env
        self._start_timeout = start_timeout
        self._close_timeout = close_timeout
        self._on_approval = on_approval
        self._on_question = on_question
        settings = {
            "cwd": os.path.abspath(cwd if cwd is not None else os.curdir),
            "provider": provider,
            "model": model,
            "reasoningEffort": reasoning_effort,
            "maxTokens": max_tokens,
            "permissionMode": permission_mode,
        }
        self._settings = cast(InitializeParams, {name: one for name, one in settings.items() if one is not None})
        self._settings["capabilities"] = {
            "approvals": on_approval is not None,
            "questions": on_question is not None,
        }
        self._connection: Optional[Connection] = None
        self._lock = threading.Lock()
        self._sessions: "weakref.WeakValueDictionary[str, Session]" = weakref.WeakValueDictionary()
        #: What the runtime said of itself when it was started.
        self.info: Optional[InitializeResult] = None

    def __enter__(self) -> "Lorimer":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> "Lorimer":
        """Starts the process.

        Raises `RpcError` when the settings cannot be used, `RuntimeClosed` when it ends at once, and `TimeoutError` when
        it does not answer; none of these leaves a process.
        """
        if self._connection is not None:
            raise RuntimeError("the runtime was started before; make another Lorimer")
        self._connection = Connection(self._command, self._env, self._notified, self._answer, self._ended)
        try:
            self.info = self._connection.request("initialize", self._settings, self._start_timeout)
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> Optional[int]:
        """Ends all sessions and the process, which is reaped when this returns. May be called again.

        Returns the exit code, None when it was never started.
        """
        return None if self._connection is None else self._connection.close(self._close_timeout)

    @property
    def pid(self) -> Optional[int]:
        """The process, once it is started."""
        return None if self._connection is None else self._connection.process.pid

    def session(self, id: Optional[str] = None) -> Session:
        """A new session. It is stored with its first message, which fails when the id is taken."""
        return self._session(id if id is not None else str(uuid.uuid4()))

    def resume(self, id: str) -> Session:
        """Opens a stored session. Raises `RpcError` when there is none, or when it is open already."""
        session = self._session(id)
        self._request("session/resume", {"sessionId": id})
        return session

    def list(self, cwd: Union[str, "os.PathLike[str]", None] = None) -> List[ListedSession]:
        """Stored sessions, the newest activity first; only those of one workspace when `cwd` is given."""
        params = {} if cwd is None else {"cwd": os.path.abspath(cwd)}
        return cast(List[ListedSession], self._request("session/list", params)["sessions"])

    def fork(self, id: str, turn: Optional[int] = None) -> str:
        """Stores a new session that begins like another one, up to a turn, and returns its id; resume it to go on."""
        params: Dict[str, Any] = {"sessionId": id} if turn is None else {"sessionId": id, "turn": turn}
        return str(self._request("session/fork", params)["sessionId"])

    def delete(self, id: str) -> None:
        """Deletes a stored session with all its files."""
        self._request("session/delete", {"sessionId": id})

    def _request(self, method: str, params: Mapping[str, Any]) -> Any:
        return self._started().request(method, params)

    def _started(self) -> Connection:
        if self._connection is None:
            raise RuntimeError("the runtime is not started; use `with Lorimer() as lorimer:`")
        return self._connection

    def _session(self, id: str) -> Session:
        with self._lock:
            session = self._sessions.get(id)
            if session is None:
                session = self._sessions[id] = Session(self._started(), id)
            return session

    def _notified(self, method: str, params: Any) -> None:
        id = params.get("sessionId") if isinstance(params, dict) else None
        with self._lock:
            session = self._sessions.get(str(id))
        if session is None:
            return
        if method == "session.event":
            session._tell("event", params["event"])
        elif method == "session.status" and params["status"] == "idle":
            session._tell("idle", None)

    def _ended(self, error: RuntimeClosed) -> None:
        with self._lock:
            sessions = list(self._sessions.values())
        for session in sessions:
            session._tell("end", error)

    def _answer(self, method: str, params: Any) -> Any:
        if method == "approval/request" and self._on_approval is not None:
            return _approval(self._on_approval(params))
        if method == "question/ask" and self._on_question is not None:
            answers = self._on_question(params)
            if answers is None:
                raise RuntimeError("the person does not want to answer")
            return {"answers": answers}
        raise RuntimeError(f"nobody here answers {method}")


def _approval(answer: Approval) -> ApprovalResult:
    if isinstance(answer, str):
        return {"outcome": "rejected", "message": answer}
    if isinstance(answer, dict):
        return answer
    # Anything that is not plainly a yes is a no.
    return {"outcome": "allowed-once" if answer is True else "rejected"}
