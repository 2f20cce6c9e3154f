"""smolagents' LocalPythonExecutor: an interpreter of Python's syntax tree in the caller's own process."""

from smolagents.local_python_executor import LocalPythonExecutor


class Session:
    def __init__(self, seconds: int | None) -> None:
        limit = {} if seconds is None else {"timeout_seconds": seconds}
        self._executor = LocalPythonExecutor(additional_authorized_imports=[], **limit)
        self._executor.send_tools({})

    def run(self, code: str) -> str:
        return self._executor(code).logs

    def run_with_tools(self, code: str, tools: dict) -> str:
        self._executor.send_tools(tools)
        return self._executor(code).logs

    def close(self) -> None:
        pass
