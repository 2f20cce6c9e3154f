"""Monty, an interpreter of a part of Python written in Rust, in worker processes of a pool."""

from pydantic_monty import CollectString, Monty


class Session:
    """A pool from which every run checks out a worker, as a host with scripts of several users does."""

    def __init__(self, seconds: float | None) -> None:
        self._limits = None if seconds is None else {"max_feed_duration_secs": seconds}
        self._pool = Monty()
        self._pool.__enter__()

    def run(self, code: str) -> str:
        return self.run_with_tools(code, {})

    def run_with_tools(self, code: str, tools: dict) -> str:
        said = CollectString()
        with self._pool.checkout(limits=self._limits) as session:
            session.feed_run(code, external_lookup=tools, print_callback=said)
        return said.output

    def close(self) -> None:
        self._pool.__exit__(None, None, None)
