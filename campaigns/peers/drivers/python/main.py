"""Drives one peer for bench/peers: `main.py NAME` answers requests on standard input, a line of JSON each.

It takes the place of an application's process: it measures the waiting time of a caller, and everything that is left
after it is killed was left by the peer.
"""

import importlib
import json
import os
import sys
import time

PEERS = {
    "llm-sandbox": "llm_sandbox_docker",
    "smolagents-local": "smolagents_local",
    "smolagents-docker": "smolagents_docker",
    "jupyter": "jupyter_kernel",
    "monty": "monty",
    "docker-run": "docker_run",
}


def main() -> None:
    # Libraries print to standard output; answers need a descriptor of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    driver = Driver(importlib.import_module("peers." + PEERS[sys.argv[1]]).Session)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(driver, "do_" + request["op"])(request)
        except Exception as error:  # a failure is an answer, too
            answer = {"trouble": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    # Some peers leave threads that would keep this process alive.
    os._exit(0)


class Driver:
    """One method for each operation. A peer is what opens a session whose runs end after so many seconds, or never; its
    `NO_TOOLS` and `NO_DEADLINE` say how it lacks those.
    """

    def __init__(self, peer) -> None:
        self._peer = peer
        self._session = None

    def do_open(self, _request: dict) -> dict:
        self._session = self._peer(None)
        return {}

    def do_run(self, request: dict) -> dict:
        return timed_run(self._session, request["code"])

    def do_cold(self, request: dict) -> dict:
        start = time.perf_counter()
        session = self._peer(None)
        answer = timed_run(session, request["code"])
        answer["ms"] = (time.perf_counter() - start) * 1000
        session.close()
        return answer

    def do_tool(self, request: dict) -> dict:
        """A script in which `add` is a function of this process."""
        if not hasattr(self._session, "run_with_tools"):
            return {"absent": getattr(self._peer, "NO_TOOLS", "none")}
        return timed_run(self._session, request["code"], {"add": add})

    def do_deadline(self, request: dict) -> dict:
        """A run with a limit in seconds. Its processes stay until the next run, so that they can be inspected."""
        if hasattr(self._peer, "NO_DEADLINE"):
            return {"absent": self._peer.NO_DEADLINE}
        session = self._peer(request["seconds"])
        timed_run(session, "print(1)")
        return timed_run(session, request["code"])

    def do_close(self, _request: dict) -> dict:
        self._session.close()
        return {}


def timed_run(session, code: str, tools: dict | None = None) -> dict:
    start = time.perf_counter()
    try:
        text = session.run(code) if tools is None else session.run_with_tools(code, tools)
        outcome = {"text": text}
    except Exception as error:  # refusals and time-outs are outcomes, too
        outcome = {"error": f"{type(error).__name__}: {error}"}
    outcome["ms"] = (time.perf_counter() - start) * 1000
    return outcome


def add(a: int, b: int) -> int:
    """Adds two numbers.

    Args:
        a: one number
        b: the other
    """
    return a + b


if __name__ == "__main__":
    main()
