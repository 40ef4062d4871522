"""Two sides of a comparison that take turns, each in a process of its own.

In one process their thread pools would disturb each other. Taking turns round by round, in an order that reverses
each time, lets a machine that slows down slow both. A worker answers each line of its standard input with a line of
JSON (`serve`); the process that compares asks (`Child`, `take_turns`).
"""

import json
import os
import subprocess
import sys


def peak_memory():
    """Largest resident memory of this process so far, in kB."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:  # getrusage would include the parent before exec
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform != "darwin" else peak // 1024


def serve(answer):
    """Answer each line of standard input with answer(line) as JSON, until it ends."""
    for line in sys.stdin:
        print(json.dumps(answer(line.strip())), flush=True)


class Child:
    """`python -m module arguments`, held to `threads` threads, ready to be asked. Use as a context manager."""

    def __init__(self, module, *arguments, threads):
        count = str(threads)
        limits = {"OMP_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count, "RAYON_NUM_THREADS": count}
        self.command = [sys.executable, "-m", module, *arguments]
        self.process = subprocess.Popen(
            self.command, env=os.environ | {"OMP_WAIT_POLICY": "PASSIVE"} | limits, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, encoding="utf-8",
        )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, line):
        """What the worker answers to `line`; RuntimeError where it ended instead (its last words are on stderr)."""
        try:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
            reply = self.process.stdout.readline()
        except BrokenPipeError:
            reply = ""
        if not reply:
            raise RuntimeError(f"{' '.join(self.command)} ended early with status {self.process.wait()}")
        return json.loads(reply)


def take_turns(children, line, rounds):
    """{name: list of `rounds` replies} of the children {name: Child}, asked in an order that reverses every round."""
    replies, names = {name: [] for name in children}, list(children)
    for k in range(rounds):
        for name in names[:: -1 if k % 2 else 1]:
            replies[name].append(children[name].ask(line))
    return replies
