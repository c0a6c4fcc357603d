"""The client on the real program, with scripted models that need no network."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))

from frames import Frames  # noqa: E402
from schema import DESCRIPTION, problems  # noqa: E402

from lorimer_client import Lorimer, RpcError, RuntimeClosed, RunTimeout, TurnFailed  # noqa: E402

BINARY = os.environ["LORIMER_TEST_BINARY"]
#: No test comes near it; it only ends one that hangs.
PATIENCE = 60.0


def bash(command):
    return {"calls": [{"name": "bash", "arguments": {"command": command, "description": "Does it"}}]}


def asking(command):
    """A call that needs a person's leave wherever it runs."""
    wish = {"sandbox_permissions": "danger-full-access", "justification": "It has to."}
    return {"calls": [{"name": "bash", "arguments": {"command": command, "description": "Does it", **wish}}]}


QUESTION = {"id": "colour", "question": "Which?", "options": [{"label": "red"}, {"label": "blue"}]}


def examples():
    """The blocks of code of the README."""
    return re.findall(r"```python\n(.*?)```", (HERE / "README.md").read_text(), re.DOTALL)


class ClientTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="lorimer-client-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()
        self.workspace = self.root / "ws"
        self.workspace.mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LORIMER_", "DSH_"))}
        self.env = {**kept, "LORIMER_HOME": str(self.root / "home")}
        self.frames = Frames()
        # Clean-ups run backwards: this one after every runtime is closed.
        self.addCleanup(lambda: self.assertEqual(self.frames.problems, []))
        self.frames.__enter__()
        self.addCleanup(self.frames.__exit__)

    def script(self, *turns, **more):
        path = self.root / "script.json"
        path.write_text(json.dumps({"turns": list(turns), **more}))
        return str(path)

    def lorimer(self, *turns, fail=None, **options):
        if "model" not in options:
            options["model"] = self.script(*turns, fail=fail or {})
        options.setdefault("permission_mode", "danger-full-access")
        command = options.pop("command", (BINARY, "sdk"))
        lorimer = Lorimer(command, cwd=self.workspace, provider="offline", env=self.env, **options)
        self.addCleanup(lorimer.close)
        return lorimer

    def tool_results(self, result):
        blocks = [event["data"]["message"]["content"][0] for event in result.events if event["type"] == "tool/result"]
        return ["".join(piece.get("text", "") for piece in block["content"]) for block in blocks]

    def until(self, turn, kind):
        for event in turn:
            if event["type"] == kind:
                return event
        self.fail(f"no {kind}")

    def test_a_tool_turn_is_streamed(self):
        with self.lorimer(bash("echo from the tool"), {"text": "done"}) as lorimer:
            self.assertEqual(lorimer.info["runtime"]["cwd"], str(self.workspace))
            turn = lorimer.session().stream("go")
            kinds = [event["type"] for event in turn]
            result = turn.result()
        self.assertEqual((kinds[0], kinds[-1]), ("turn/start", "turn/end"))
        self.assertIn("assistant/chunk", kinds)
        self.assertEqual((result.text, result.stop_reason, result.ok), ("done", "completed", True))
        self.assertEqual([event["type"] for event in result.events], kinds)
        self.assertIn("from the tool", self.tool_results(result)[0])
        self.assertGreater(result.usage["inputTokens"], 0)

    def test_the_description_tells_right_from_wrong(self):
        event = {"type": "turn/end", "seq": 1, "time": 0, "data": {"turn": 1, "reason": {"kind": "completed"}}}
        schema = DESCRIPTION["$defs"]["SessionEvent"]
        self.assertEqual(problems(schema, event), [])
        self.assertEqual(problems(schema, {**event, "type": "of/later", "data": 5}), [])
        for data in ({}, {"turn": "1"}, {"turn": 1, "reason": {"kind": "error", "error": {"code": "X"}}}):
            self.assertNotEqual(problems(schema, {**event, "data": data}), [], data)
        later = {"turn": 1, "reason": {"kind": "of-later", "more": 1}}
        self.assertEqual(problems(schema, {**event, "data": later}), [])

    def test_recorded_sessions_fit_the_description(self):
        seen = set()
        for log in (HERE.parents[1] / "tests/fixtures/conformance/logs").glob("*.jsonl"):
            for seq, line in enumerate(log.read_text().replace('"{{tools}}"', "[]").splitlines()):
                event = {"seq": seq, "time": 0, **json.loads(line)}
                if "data" in event:
                    self.assertEqual(problems(DESCRIPTION["$defs"]["SessionEvent"], event), [], line)
                    seen.add(event["type"])
        self.assertGreater(len(seen & DESCRIPTION["events"].keys()), 10)

    def test_turns_of_a_session_follow_each_other(self):
        with self.lorimer({"text": "one"}, {"text": "two"}) as lorimer:
            session = lorimer.session("chosen-id")
            first, second = session.stream("first"), session.stream([{"type": "text", "text": "second"}])
            self.assertEqual(second.result(PATIENCE).text, "two")
            self.assertEqual(first.result(PATIENCE).text, "one")
            self.assertEqual([second.result().events[0]["data"], session.id], [{"turn": 2}, "chosen-id"])

    def test_sessions_work_at_once(self):
        meet = 'touch "met-$$"; while [ $(ls | wc -l) -lt 2 ]; do sleep 0.05; done; echo met'
        with self.lorimer(bash(meet), {"text": "done"}) as lorimer:
            turns = [lorimer.session().stream("go") for _ in range(2)]
            results = [turn.result(PATIENCE) for turn in turns]
        self.assertEqual([result.text for result in results], ["done", "done"])
        self.assertNotEqual(results[0].session_id, results[1].session_id)

    def test_a_running_turn_is_steered(self):
        wait = bash("while [ ! -e go ]; do sleep 0.05; done")
        with self.lorimer(wait, {"text": "done"}) as lorimer:
            session = lorimer.session()
            turn = session.stream("begin")
            self.until(turn, "tool/call")
            session.steer("and another thing")
            (self.workspace / "go").touch()
            result = turn.result(PATIENCE)
        self.assertEqual(result.text, "done")
        said = [event["data"]["content"] for event in result.events if event["type"] == "user/message"]
        self.assertIn([{"type": "text", "text": "and another thing"}], said)

    def test_a_running_turn_is_cancelled(self):
        with self.lorimer({"text": "wait", **bash("sleep 600")}) as lorimer:
            session = lorimer.session()
            turn, waiting = session.stream("go"), session.stream("later")
            self.until(turn, "tool/call")
            self.assertTrue(session.cancel())
            with self.assertRaises(TurnFailed) as failed:
                turn.result(PATIENCE)
            self.assertEqual((failed.exception.result.stop_reason, failed.exception.result.text), ("aborted", "wait"))
            self.assertEqual(waiting.result(PATIENCE, check=False).stop_reason, "discarded")
            self.assertFalse(session.cancel())

    def test_stored_sessions_go_on_in_another_process(self):
        script = self.script({"text": "one"}, {"text": "two"}, {"text": "three"})
        with self.lorimer(model=script) as lorimer:
            session = lorimer.session()
            session.run("first", PATIENCE)
            session.run("second", PATIENCE)
        with self.lorimer(model=script) as lorimer:
            with self.assertRaisesRegex(RpcError, "not found"):
                lorimer.resume("no-such-session")
            with self.assertRaisesRegex(RpcError, "already exists"):
                lorimer.session(session.id).run("again", PATIENCE)
            self.assertEqual(lorimer.resume(session.id).run("third", PATIENCE).text, "three")
            fork = lorimer.fork(session.id, turn=1)
            with lorimer.resume(fork) as forked:
                self.assertEqual(forked.run("other", PATIENCE).text, "two")
            listed = {one["sessionId"]: one for one in lorimer.list(self.workspace)}
            self.assertEqual(set(listed), {session.id, fork})
            self.assertEqual(listed[fork]["parentSessionId"], session.id)
            self.assertEqual((listed[session.id]["open"], listed[fork]["open"]), (True, False))
            lorimer.delete(fork)
            self.assertEqual([one["sessionId"] for one in lorimer.list()], [session.id])

    def test_the_working_directory_changes(self):
        (self.workspace / "inner").mkdir()
        with self.lorimer(bash("pwd"), {"text": "done"}) as lorimer:
            session = lorimer.session()
            self.assertEqual(session.working_directory, str(self.workspace))
            session.working_directory = "inner"
            self.assertEqual(session.working_directory, str(self.workspace / "inner"))
            self.assertIn("/ws/inner", self.tool_results(session.run("where?", PATIENCE))[0])
            with self.assertRaises(RpcError):
                session.working_directory = "missing"

    def test_approvals_are_asked(self):
        asked = []

        def decide(request):
            asked.append((request["toolName"], request["arguments"]["command"]))
            return "not like this" if len(asked) == 2 else True

        turns = (asking("echo yes"), asking("echo no"), {"text": "done"})
        with self.lorimer(*turns, permission_mode="workspace-write", on_approval=decide) as lorimer:
            results = self.tool_results(lorimer.session().run("go", PATIENCE))
        self.assertEqual(asked, [("bash", "echo yes"), ("bash", "echo no")])
        self.assertIn("yes", results[0])
        self.assertIn("not like this", results[1])

    def test_a_callback_that_fails_is_a_no(self):
        def decide(request):
            raise ValueError("no idea")

        (self.workspace / "keep").touch()
        turns = (asking("rm keep"), {"text": "done"})
        for options in ({"on_approval": decide}, {"on_approval": lambda request: None}, {}):
            with self.lorimer(*turns, permission_mode="workspace-write", **options) as lorimer:
                lorimer.session().run("go", PATIENCE)
            self.assertTrue((self.workspace / "keep").exists())

    def test_a_question_that_is_open_does_not_hold_up_a_cancel(self):
        asked, answer = threading.Event(), threading.Event()
        self.addCleanup(answer.set)

        def decide(request):
            asked.set()
            return answer.wait(PATIENCE)

        with self.lorimer(asking("touch made"), permission_mode="workspace-write", on_approval=decide) as lorimer:
            session = lorimer.session()
            turn = session.stream("go")
            self.assertTrue(asked.wait(PATIENCE))
            session.cancel()
            self.assertEqual(turn.result(PATIENCE, check=False).stop_reason, "aborted")
            answer.set()
        self.assertFalse((self.workspace / "made").exists())

    def test_questions_are_answered(self):
        ask = {"calls": [{"name": "ask_user_question", "arguments": {"questions": [QUESTION]}}]}
        answers = {"answer": [{"id": "colour", "selected": ["blue"]}], "nothing": None}
        for expected, given in (("blue", answers["answer"]), ("", answers["nothing"])):
            asked = []

            def answer(request):
                asked.extend(request["questions"])
                return given

            with self.lorimer(ask, {"text": "done"}, on_question=answer) as lorimer:
                result = lorimer.session().run("go", PATIENCE)
            self.assertEqual(asked, [QUESTION])
            self.assertIn(expected, self.tool_results(result)[0])

    def test_a_failing_provider_is_told(self):
        with self.lorimer({"text": "ok"}, fail={"1": {"status": 401, "message": "who are you"}}) as lorimer:
            session = lorimer.session()
            with self.assertRaisesRegex(TurnFailed, "AUTH.*who are you") as failed:
                session.run("go", PATIENCE)
            self.assertEqual(failed.exception.result.error["code"], "AUTH")
            self.assertEqual(session.run("again", PATIENCE).text, "ok")

    def test_half_an_answer_is_none(self):
        with self.lorimer({"text": "half an", "finish": "length"}) as lorimer:
            result = lorimer.session().run("go", PATIENCE, check=False)
        self.assertEqual((result.text, result.ok, result.stop_reason), ("half an", False, "max-tokens"))
        self.assertRaises(TurnFailed, result.raise_for_status)

    def test_a_turn_that_takes_too_long_is_cancelled(self):
        with self.lorimer(bash("sleep 600"), {"text": "ready"}) as lorimer:
            session = lorimer.session()
            with self.assertRaises(RunTimeout) as late:
                session.run("go", timeout=1)
            self.assertEqual(late.exception.result.stop_reason, "aborted")
            self.assertEqual(session.run("and now?", PATIENCE).text, "ready")

    def test_a_killed_runtime_ends_everything(self):
        lorimer = self.lorimer(bash("sleep 5")).start()
        session = lorimer.session()
        turn = session.stream("go")
        self.until(turn, "tool/call")
        os.kill(lorimer.pid, signal.SIGKILL)
        with self.assertRaises(RuntimeClosed) as closed:
            turn.result(PATIENCE)
        self.assertEqual(closed.exception.exit_code, -signal.SIGKILL)
        self.assertIn("exit code -9", str(closed.exception))
        for late in (turn.result, lorimer.list, lambda: session.run("more"), lambda: lorimer.resume("x")):
            self.assertRaises(RuntimeClosed, late)
        self.assertEqual(lorimer.close(), -signal.SIGKILL)

    def test_settings_that_cannot_be_used_leave_no_process(self):
        lorimer = self.lorimer(model="x")
        lorimer._settings["provider"] = "nobody"
        with self.assertRaisesRegex(RpcError, "no adapter registered"):
            lorimer.start()
        self.assertIsNotNone(lorimer._connection.process.returncode)

    def test_a_program_that_ends_at_once_says_so(self):
        complain = "import sys; sys.stderr.write('no such thing\\n'); sys.exit(3)"
        with self.assertRaisesRegex(RuntimeClosed, "no such thing") as closed:
            self.lorimer(model="x", command=(sys.executable, "-c", complain)).start()
        self.assertEqual(closed.exception.exit_code, 3)
        with self.assertRaises(FileNotFoundError):
            self.lorimer(model="x", command=(str(self.root / "missing"),)).start()

    def test_a_program_that_says_much_on_the_side_does_not_stand_still(self):
        chatty = (
            "import json, sys\n"
            "sys.stderr.write('much to say\\n' * 200_000)\n"
            "number = json.loads(sys.stdin.readline())['id']\n"
            "error = {'code': -32603, 'message': 'enough'}\n"
            "print(json.dumps({'jsonrpc': '2.0', 'id': number, 'error': error}), flush=True)\n"
        )
        with self.assertRaisesRegex(RpcError, "enough"):
            self.lorimer(model="x", command=(sys.executable, "-c", chatty)).start()

    def test_a_program_that_does_not_answer_is_given_up(self):
        silent = (sys.executable, "-c", "import sys; sys.stdin.read()")
        lorimer = self.lorimer(model="x", command=silent, start_timeout=0.3, close_timeout=0.3)
        self.assertRaises(TimeoutError, lorimer.start)
        self.assertEqual(lorimer.close(), 0)

    def test_a_program_that_does_not_end_is_killed(self):
        stubborn = (
            "import json, signal, sys, time\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "number = json.loads(sys.stdin.readline())['id']\n"
            "print(json.dumps({'jsonrpc': '2.0', 'id': number, 'result': {}}), flush=True)\n"
            "time.sleep(600)\n"
        )
        lorimer = self.lorimer(model="x", command=(sys.executable, "-c", stubborn), close_timeout=0.3).start()
        self.assertEqual(lorimer.close(), -signal.SIGKILL)
        self.assertEqual(lorimer.close(), -signal.SIGKILL)
        # It is no runtime, and says so little.
        self.frames.problems.clear()

    def test_closing_ends_a_running_turn(self):
        with self.lorimer(bash("sleep 600")) as lorimer:
            session, other = lorimer.session(), lorimer.session()
            turn, unheard = session.stream("go"), other.stream("go")
            self.until(turn, "tool/call")
            self.until(unheard, "tool/call")
            session.close()
            self.assertEqual(turn.result(PATIENCE, check=False).stop_reason, "aborted")
            self.assertEqual(lorimer.close(), 0)
            # A runtime that shuts down tells no more events.
            self.assertRaises(RuntimeClosed, unheard.result)

    def test_the_example_of_the_readme_runs_as_it_stands(self):
        example = examples()[0]
        self.assertLessEqual(len(example.strip().splitlines()), 10)
        home = self.root / "home"
        home.mkdir()
        model = self.script(asking("echo ran > proof"), {"text": "All tests pass."})
        (home / "config.toml").write_text(f'model = "offline/{model}"\n')
        programs = self.root / "bin"
        programs.mkdir()
        (programs / "lorimer").symlink_to(BINARY)
        path = f"{programs}{os.pathsep}{self.env['PATH']}"
        env = {**self.env, "PATH": path, "PYTHONPATH": str(HERE), "PYTHONWARNINGS": "error"}
        ran = subprocess.run(
            [sys.executable, "-c", example],
            cwd=self.workspace,
            env=env,
            input="y\n",
            text=True,
            capture_output=True,
            timeout=PATIENCE,
        )
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertIn("All tests pass.", ran.stdout)
        self.assertTrue((self.workspace / "proof").exists())

    def test_the_other_example_of_the_readme_streams(self):
        with self.lorimer({"text": "It is small."}) as lorimer, redirect_stdout(StringIO()) as printed:
            exec(examples()[1], {"session": lorimer.session()})
        self.assertTrue(printed.getvalue().startswith("It is small.{'inputTokens'"), printed.getvalue())


if __name__ == "__main__":
    unittest.main()
