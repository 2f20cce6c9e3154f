"""smolagents' DockerExecutor: a Jupyter kernel gateway in a container, over a port of this machine."""

import socket

from smolagents.monitoring import AgentLogger, LogLevel
from smolagents.remote_executors import DockerExecutor

# An image with the packages of the executor's own Dockerfile on Debian's Python: that file's base image cannot be pulled.
IMAGE = "peers-gateway:latest"


class Session:
    NO_TOOLS = "copied into the container"
    NO_DEADLINE = "has none"

    def __init__(self, _seconds: float | None) -> None:
        self._executor = DockerExecutor(
            additional_imports=[],
            logger=AgentLogger(level=LogLevel.OFF),
            image_name=IMAGE,
            build_new_image=False,
            port=free_port(),
        )

    def run(self, code: str) -> str:
        return self._executor.run_code_raise_errors(code).logs

    def close(self) -> None:
        self._executor.cleanup()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
