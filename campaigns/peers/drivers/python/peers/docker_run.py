"""`docker run` with one container per script: the baseline without a library."""

import subprocess

IMAGE = "sandglass-python:latest"


class Session:
    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds

    def run(self, code: str) -> str:
        command = ["docker", "run", "--rm", IMAGE, "python3", "-c", code]
        # Docker has no time limit for a run, so the limit is the one of subprocess. The stderr of `python3` is the error.
        done = subprocess.run(command, capture_output=True, text=True, timeout=self._seconds, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        return done.stdout

    def close(self) -> None:
        pass
