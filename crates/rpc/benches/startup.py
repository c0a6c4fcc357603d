#!/usr/bin/env python3
"""From spawn to the answer of `initialize`, ours and a peer's in turn, and what a client that does not read costs.

usage: startup.py OURS [PEER] [--runs 7]
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

INITIALIZE = {"cwd": None, "provider": "deepseek-official", "model": "deepseek-v4-flash"}


def start(binary, home, workspace, **variables):
    env = {**os.environ, "HOME": str(home), "DSH_HOME": str(home / "dsh"), "DEEPSEEK_API_KEY": "none",
           "DEEPSEEK_BASE_URL": "http://127.0.0.1:9", **variables}
    return subprocess.Popen([binary, "--profile", "sdk"], cwd=workspace, env=env, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def send(process, method, **params):
    frame = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
    process.stdin.write((json.dumps(frame) + "\n").encode())
    process.stdin.flush()


def initialize_ms(binary, home, workspace):
    began = time.perf_counter()
    process = start(binary, home, workspace)
    send(process, "initialize", **{**INITIALIZE, "cwd": str(workspace)})
    answer = json.loads(process.stdout.readline())
    took = (time.perf_counter() - began) * 1000
    assert "serverInfo" in answer["result"], answer
    process.stdin.close()
    process.stdout.read()
    process.wait()
    return took


def peak_mib(process):
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def unread_mib(binary, home, workspace, reads):
    """Peak memory while 16 MB of reply are told to a client that reads all of it, or nothing."""
    script = home / "script.json"
    script.write_text(json.dumps({"turns": [{"text": "abcdefgh" * 2_000_000}]}))
    process = start(binary, home, workspace)
    send(process, "initialize", cwd=str(workspace), provider="offline", model=str(script))
    prompt = [{"type": "text", "text": "go"}]
    send(process, "session/prompt", sessionId=f"reads-{reads}", contentBlocks=prompt)
    if reads:
        for line in process.stdout:
            if b'"idle"' in line:
                break
    else:
        time.sleep(3)
    peak = peak_mib(process)
    process.kill()
    process.wait()
    return peak


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("ours")
    arguments.add_argument("peer", nargs="?")
    arguments.add_argument("--runs", type=int, default=7)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as root:
        workspace = Path(root) / "ws"
        workspace.mkdir()
        homes = {name: Path(root) / name for name in ("ours", "peer")}
        for home in homes.values():
            home.mkdir()
        times = {"ours": [], "peer": []}
        for _ in range(options.runs + 1):
            for name, binary in (("ours", options.ours), ("peer", options.peer)):
                if binary:
                    times[name].append(initialize_ms(str(Path(binary).resolve()), homes[name], workspace))
        # The first run of each fills the disk's cache and makes the home.
        medians = {name: statistics.median(taken[1:]) for name, taken in times.items() if taken}
        for name, median in medians.items():
            print(f"spawn to the answer of initialize, {name}: {median:.1f} ms")
        if "peer" in medians:
            print(f"ratio: 1/{medians['peer'] / medians['ours']:.0f}")
        for reads in (True, False):
            peak = unread_mib(str(Path(options.ours).resolve()), homes["ours"], workspace, reads)
            print(f"peak memory with a reply of 16 MB, client {'reads' if reads else 'does not read'}: {peak:.0f} MiB")


if __name__ == "__main__":
    sys.exit(main())
