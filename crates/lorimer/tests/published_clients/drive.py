"""Drives agents with the published Python client of the DeepSeek Harness, as JSON lines on standard input ask for it.

A line is {"op": NAME, "harness": NAME, ..., "task"?: NAME} and is answered with one line of what the client gave:
{"ok": VALUE, "seconds": N} or {"error": {"type", "message", "code"}, "seconds": N}. An op with a "task" goes on in the
background and is answered at once; {"op": "wait", "task": NAME} has its outcome. `drive.mjs` is the same for Node.
"""

import json
import sys
import threading
import time

from deepseek_harness import DeepSeekHarness

harnesses = {}
clients = {}
processes = {}
tasks = {}


def open_harness(name, options):
    options = dict(options)
    options.pop("args", None)
    options["patches"] = tuple(options.get("patches", ()))
    harness = DeepSeekHarness(**options)
    harness.client.start()
    clients[name] = harness.client
    # The client forgets its process when it closes.
    processes[name] = harness.client._proc
    harness.start()
    harnesses[name] = harness
    return {"pid": processes[name].pid}


def run(name, session, input):
    seen = []

    def note(notification):
        seen.append({"method": notification.method, "params": notification.payload})

    result = harnesses[name].run(input, session_id=session, on_notification=note)
    return {
        "text": result.final_response,
        "finishReason": result.finish_reason,
        "events": result.events,
        "notifications": seen,
    }


def said(name):
    clients[name]._stderr_thread.join()
    return "\n".join(clients[name]._stderr_lines)


def close(name):
    harness = harnesses.pop(name)
    harness.close()
    return {"exitCode": processes[name].returncode, "stderr": list(harness.client._stderr_lines)}


def session(name, id):
    return harnesses[name].start_session(id)


OPS = {
    "open": lambda a: open_harness(a["harness"], a["options"]),
    "run": lambda a: run(a["harness"], a["session"], a["input"]),
    "resume": lambda a: {"id": harnesses[a["harness"]].resume_session(a["session"]).id},
    "getDirectory": lambda a: session(a["harness"], a["session"]).get_working_directory(),
    "setDirectory": lambda a: session(a["harness"], a["session"]).set_working_directory(a["path"]),
    "said": lambda a: said(a["harness"]),
    "exitCode": lambda a: processes[a["harness"]].wait(),
    "close": lambda a: close(a["harness"]),
}


def outcome(ask):
    began = time.monotonic()
    try:
        answer = {"ok": OPS[ask["op"]](ask)}
    except BaseException as error:
        answer = {
            "error": {
                "type": type(error).__name__,
                "message": str(error),
                "code": getattr(error, "code", None),
            }
        }
    return {**answer, "seconds": time.monotonic() - began}


def in_background(ask):
    outcomes = []
    thread = threading.Thread(target=lambda: outcomes.append(outcome(ask)), daemon=True)
    thread.start()
    tasks[ask["task"]] = (thread, outcomes)
    return {"ok": None, "seconds": 0}


def waited_for(name):
    thread, outcomes = tasks.pop(name)
    thread.join()
    return outcomes[0]


for line in sys.stdin:
    ask = json.loads(line)
    if ask["op"] == "wait":
        answer = waited_for(ask["task"])
    elif "task" in ask:
        answer = in_background(ask)
    else:
        answer = outcome(ask)
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
