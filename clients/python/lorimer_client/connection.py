"""One process of the runtime and the frames between: a JSON object a line, in each direction."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Mapping, Optional, Sequence, Tuple

from .errors import RpcError, RuntimeClosed

#: Lines of standard error that are kept for an error's text.
STDERR_LINES = 50

#: What a request waits for: a result, or the error that takes its place.
Outcome = Tuple[Any, Optional[Exception]]
Handler = Callable[[str, Any], None]


class Connection:
    """Starts a runtime and speaks with it.

    One thread reads frames and one standard error, so a chatty runtime never stands still. What the runtime asks for is
    answered on a thread of its own. Whatever happens, a request ends: with its result, with `RpcError`, or with
    `RuntimeClosed`.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Optional[Mapping[str, str]],
        on_notification: Handler,
        answer: Callable[[str, Any], Any],
        on_end: Callable[[RuntimeClosed], None],
    ) -> None:
        self._on_notification = on_notification
        self._answer = answer
        self._on_end = on_end
        self._stderr: Deque[str] = deque(maxlen=STDERR_LINES)
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._next_id = 1
        self._waiting: Dict[int, Callable[[Outcome], None]] = {}
        self._cancelled: "set[str]" = set()
        self._asked: "set[str]" = set()
        self._closed: Optional[RuntimeClosed] = None
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if env is None else dict(env),
        )
        self._drainer = threading.Thread(target=self._drain, name="lorimer-stderr", daemon=True)
        self._reader = threading.Thread(target=self._read, name="lorimer-reader", daemon=True)
        self._drainer.start()
        self._reader.start()

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        """The process."""
        return self._process

    def request(
        self,
        method: str,
        params: Mapping[str, Any],
        timeout: Optional[float] = None,
        on_outcome: Optional[Callable[[Outcome], None]] = None,
    ) -> Any:
        """Asks for something and waits for the result.

        `on_outcome` is told first, by the reader, so nothing that comes later has been read yet.
        """
        outcomes: "queue.SimpleQueue[Outcome]" = queue.SimpleQueue()

        def done(outcome: Outcome) -> None:
            if on_outcome is not None:
                on_outcome(outcome)
            outcomes.put(outcome)

        with self._lock:
            if self._closed is not None:
                raise self._closed
            number = self._next_id
            self._next_id += 1
            self._waiting[number] = done
        try:
            self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            result, error = outcomes.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError(f"{method} was not answered within {timeout:g} s") from None
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        if error is not None:
            raise error
        return result

    def close(self, grace: float) -> Optional[int]:
        """Ends the runtime. The process is reaped when this returns. Returns its exit code.

        It is asked to end, then its input ends, then it gets SIGTERM, then SIGKILL, each after `grace` seconds.
        """
        # A write that the runtime does not take must not hold this up; its end breaks the pipe.
        asking = threading.Thread(target=self._ask_to_end, args=(grace,), daemon=True)
        asking.start()
        asking.join(grace)
        if self._writing.acquire(timeout=grace):
            try:
                self._close_input()
            finally:
                self._writing.release()
        self._reap(grace)
        self._close_input()
        # A grandchild may hold these pipes open; the threads are daemons and end with them.
        for thread, pipe in ((self._reader, self._process.stdout), (self._drainer, self._process.stderr)):
            if thread is not threading.current_thread():
                thread.join(grace)
            if pipe is not None and not thread.is_alive():
                pipe.close()
        return self._process.returncode

    def _ask_to_end(self, grace: float) -> None:
        with contextlib.suppress(RpcError, RuntimeClosed, TimeoutError):
            self.request("shutdown", {}, timeout=grace)

    def _reap(self, grace: float) -> None:
        for end in (self._process.terminate, self._process.kill):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(grace)
                return
            end()
        self._process.wait()

    def _close_input(self) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def _send(self, frame: Mapping[str, Any]) -> None:
        line = json.dumps(frame, separators=(",", ":")).encode() + b"\n"
        stdin = self._process.stdin
        try:
            with self._writing:
                if stdin is None:
                    raise ValueError("no pipe")
                stdin.write(line)
                stdin.flush()
        except (OSError, ValueError):
            # The reader knows how it ended, once it has.
            self._reader.join(1)
            raise self._closed or RuntimeClosed(
                self._process.poll(), list(self._stderr), "the runtime takes no more requests"
            ) from None

    def _drain(self) -> None:
        if self._process.stderr is not None:
            for line in self._process.stderr:
                self._stderr.append(line.decode("utf-8", "replace").rstrip("\n"))

    def _read(self) -> None:
        try:
            if self._process.stdout is not None:
                for line in self._process.stdout:
                    self._take(line)
        finally:
            self._end()

    def _take(self, line: bytes) -> None:
        try:
            frame = json.loads(line)
        except ValueError:
            return
        if not isinstance(frame, dict):
            return
        method, number = frame.get("method"), frame.get("id")
        if method is None:
            self._take_answer(number, frame)
        elif number is None:
            if method == "request.cancelled":
                with self._lock:
                    self._cancelled.update({frame["params"]["id"]} & self._asked)
            else:
                self._on_notification(method, frame.get("params"))
        else:
            with self._lock:
                self._asked.add(number)
            arguments = (number, method, frame.get("params"))
            threading.Thread(target=self._reply, args=arguments, name="lorimer-answer", daemon=True).start()

    def _take_answer(self, number: Any, frame: Dict[str, Any]) -> None:
        with self._lock:
            done = self._waiting.pop(number, None) if isinstance(number, int) else None
        if done is None:
            return
        error = frame.get("error")
        if error is None:
            done((frame.get("result"), None))
        else:
            done((None, RpcError(error.get("code", 0), error.get("message", ""))))

    def _reply(self, number: str, method: str, params: Any) -> None:
        """Answers a request of the runtime, unless it has lost interest meanwhile."""
        frame: Dict[str, Any] = {"jsonrpc": "2.0", "id": number}
        try:
            frame["result"] = self._answer(method, params)
        except Exception as error:  # noqa: BLE001  Whatever it was, the runtime waits.
            frame["error"] = {"code": -32603, "message": f"{type(error).__name__}: {error}"}
        with self._lock:
            self._asked.discard(number)
            if number in self._cancelled:
                self._cancelled.discard(number)
                return
        with contextlib.suppress(RuntimeClosed):
            self._send(frame)

    def _end(self) -> None:
        """Standard output has ended: the process ends as well, and nobody waits any longer."""
        self._reap(grace=2.0)
        self._drainer.join(1)
        closed = RuntimeClosed(self._process.returncode, list(self._stderr))
        with self._lock:
            self._closed = closed
            waiting: List[Callable[[Outcome], None]] = list(self._waiting.values())
            self._waiting.clear()
        for done in waiting:
            done((None, closed))
        self._on_end(closed)
