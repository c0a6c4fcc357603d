#!/usr/bin/env python3
"""What confinement adds to a command: `true`, alone and through each backend, in turn.

usage: overhead.py LORIMER [--runs 200]
"""
import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path


def took_ms(argv):
    began = time.perf_counter()
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1000


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("lorimer")
    arguments.add_argument("--runs", type=int, default=200)
    options = arguments.parse_args()
    lorimer = str(Path(options.lorimer).resolve())
    with tempfile.TemporaryDirectory() as workspace:
        for folder in (".git/hooks", ".lorimer"):
            (Path(workspace) / folder).mkdir(parents=True)
        protected = [f"{workspace}/.git/hooks", f"{workspace}/.lorimer"]
        helper = [lorimer, "--internal", "confine"]
        rules = ["--writable", workspace] + [part for path in protected for part in ("--read-only", path)]
        outer = ["bwrap", "--unshare-pid", "--unshare-ipc", "--unshare-net", "--die-with-parent", "--ro-bind", "/", "/",
                 "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--bind", workspace, workspace]
        outer += [part for path in protected for part in ("--ro-bind", path, path)] + ["--"]
        ways = {
            "alone": ["true"],
            "landlock": helper + rules + ["--", "true"],
            "bubblewrap": outer + helper + ["--filter-only", "--", "true"],
        }
        times = {name: [] for name in ways}
        for _ in range(options.runs):
            for name, argv in ways.items():
                try:
                    times[name].append(took_ms(argv))
                except FileNotFoundError:
                    pass
        alone = statistics.median(times["alone"])
        for name, taken in times.items():
            if taken:
                print(f"{name}: {statistics.median(taken):.2f} ms, {statistics.median(taken) - alone:+.2f} ms")


if __name__ == "__main__":
    main()
