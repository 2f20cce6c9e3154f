"""The harness's own tests: its parts, without namespaces. What needs a sandbox is in test/conformance."""
