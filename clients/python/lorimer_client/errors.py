"""What goes wrong, by type."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional

if TYPE_CHECKING:
    from .session import RunResult


class LorimerError(Exception):
    """Anything that this package raises of its own."""


class RpcError(LorimerError):
    """The runtime refused a request, and says why."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class RuntimeClosed(LorimerError):
    """The runtime has ended, or could not be reached any more.

    `exit_code` is that of the process, negative for the number of a signal that ended it, and None as long as it is not
    known. `stderr` holds the last lines it wrote there.
    """

    def __init__(self, exit_code: Optional[int], stderr: List[str], why: str = "the runtime has ended") -> None:
        status = "" if exit_code is None else f" (exit code {exit_code})"
        last = "".join(f"\n  {line}" for line in stderr[-5:])
        super().__init__(f"{why}{status}{last}")
        self.exit_code = exit_code
        self.stderr = stderr


class TurnFailed(LorimerError):
    """A turn did not end with an answer. `result` is what there is of it."""

    def __init__(self, result: "RunResult") -> None:
        detail = ""
        if result.error is not None:
            detail = f": {result.error['code']}: {result.error['message']}"
        super().__init__(f"the turn ended without an answer ({result.stop_reason}){detail}")
        self.result = result


class RunTimeout(LorimerError, TimeoutError):
    """A turn took longer than it was given, and was cancelled. `result` is what there is of it."""

    def __init__(self, seconds: float, result: "RunResult") -> None:
        super().__init__(f"the turn took longer than {seconds:g} s and was cancelled")
        self.seconds = seconds
        self.result = result
