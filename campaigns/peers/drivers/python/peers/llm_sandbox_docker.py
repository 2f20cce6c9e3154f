"""llm-sandbox with its Docker backend, its defaults and a local image."""

from llm_sandbox import SandboxSession

# The default image cannot be pulled where only package registries are reachable; a venv in the container needs PyPI.
IMAGE = "peers-python:latest"


class Session:
    def __init__(self, seconds: float | None) -> None:
        self._session = SandboxSession(
            lang="python", image=IMAGE, skip_environment_setup=True, execution_timeout=seconds
        )
        self._session.open()

    def run(self, code: str) -> str:
        result = self._session.run(code)
        if result.exit_code != 0:
            raise RuntimeError(result.stderr.strip().splitlines()[-1])
        return result.stdout

    def close(self) -> None:
        self._session.close()
