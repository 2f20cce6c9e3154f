"""The harness's own tests: its parts, without namespaces. Tests that need a sandbox are in src/testing/conformance."""
