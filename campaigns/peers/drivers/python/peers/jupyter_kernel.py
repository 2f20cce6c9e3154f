"""A Jupyter kernel (ipykernel) on this machine, by jupyter_client."""

from jupyter_client.manager import start_new_kernel


class Session:
    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._manager, self._client = start_new_kernel(kernel_name="python3")

    def run(self, code: str) -> str:
        said: list[str] = []

        def on_output(message: dict) -> None:
            if message["header"]["msg_type"] == "stream":
                said.append(message["content"]["text"])

        reply = self._client.execute_interactive(code, timeout=self._seconds, output_hook=on_output)
        content = reply["content"]
        if content["status"] != "ok":
            raise RuntimeError(f"{content['ename']}: {content['evalue']}")
        return "".join(said)

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
