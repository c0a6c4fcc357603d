"""Drives Lorimer agents: a process of `lorimer sdk`, sessions in it, and turns in these.

>>> from lorimer_client import Lorimer
>>> with Lorimer(cwd="project") as lorimer:
...     print(lorimer.session().run("What is this project about?").text)
"""

from . import protocol
from .client import Approval, Lorimer
from .errors import LorimerError, RpcError, RunTimeout, RuntimeClosed, TurnFailed
from .session import RunResult, Session, Turn

__all__ = [
    "Approval",
    "Lorimer",
    "LorimerError",
    "RpcError",
    "RunResult",
    "RunTimeout",
    "RuntimeClosed",
    "Session",
    "Turn",
    "TurnFailed",
    "protocol",
]
