"""`docker run`, one container a script: what a caller has without any library."""

import subprocess

IMAGE = "sandglass-python:latest"


class Session:
    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds

    def run(self, code: str) -> str:
        command = ["docker", "run", "--rm", IMAGE, "python3", "-c", code]
        # Docker has no limit for a run: the caller's is the one of subprocess. The text that `python3` says of a failure counts.
        done = subprocess.run(command, capture_output=True, text=True, timeout=self._seconds, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        return done.stdout

    def close(self) -> None:
        pass
