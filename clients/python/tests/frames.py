"""Listens to what a client and a runtime say to each other, and holds it against the description."""

from __future__ import annotations

import json
import threading
from unittest import mock

from lorimer_client.connection import Connection
from schema import DESCRIPTION, problems

send, take = Connection._send, Connection._take


class Frames:
    """All frames of the connections of a test. Use it as a context manager."""

    def __init__(self):
        self._lock = threading.Lock()
        self._asked = {}
        self.problems = []
        self.events = set()

    def __enter__(self):
        def sending(connection, frame):
            self._check(connection, frame, "requests", "reverseRequests")
            send(connection, frame)

        def taking(connection, line):
            self._check(connection, json.loads(line), "reverseRequests", "requests")
            take(connection, line)

        self._patches = [
            mock.patch.object(Connection, "_send", sending),
            mock.patch.object(Connection, "_take", taking),
        ]
        for patch in self._patches:
            patch.start()
        return self

    def __exit__(self, *_):
        for patch in self._patches:
            patch.stop()

    def _check(self, connection, frame, asks, answers):
        """Checks a frame of a side that makes requests of the list `asks` and answers those of the list `answers`."""
        number = frame.get("id")
        with self._lock:
            if number is None:
                schema, value = DESCRIPTION["notifications"][frame["method"]]["params"], frame["params"]
            elif "method" in frame:
                self._asked[connection, number] = frame["method"]
                schema, value = DESCRIPTION[asks][frame["method"]]["params"], frame["params"]
            elif "result" in frame:
                method = self._asked.pop((connection, number))
                schema, value = DESCRIPTION[answers][method]["result"], frame["result"]
            else:
                return
            if frame.get("method") == "session.event":
                self.events.add(value["event"]["type"])
            self.problems += [f"{problem} in {json.dumps(frame)}" for problem in problems(schema, value)]
