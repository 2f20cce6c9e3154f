"""Writes frames that only the broker may send, and some that claim to be of another run, to its own frame socket."""

import json
import os
import time


def forge(**frame):
    os.write(3, json.dumps(frame).encode() + b"\n")


forge(type="script_done", execution_id=run_id, reusable=True, use=99, duration_ms=1)
forge(type="script_done", execution_id="other", reusable=True)
forge(type="file", execution_id=run_id, path="../../etc/x", size=1, offset=0, content_base64="eA==")
forge(type="stdout", execution_id=run_id, text="forged")
forge(type="ready", protocol=99, python="x", tools={}, preload={}, checks={})
forge(type="pong", nonce="x")
forge(type="reset_done", nonce="x", reusable=True)
forge(type="log", execution_id="other", message="whose?", level="info")
os.write(3, b"not json\n\xff\xfe\n[1,2]\n{}\n" + b'{"type": {"a": 1}}\n')
time.sleep(0.2)
emit_result("real")
forge(type="final_result", execution_id="other", data="second")
