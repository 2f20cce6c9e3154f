import json
import unittest

from sandglass_harness.broker import request_shape

EXECUTE = {
    "type": "execute",
    "execution_id": "e1",
    "script": "pass",
    "mode": "plan",
    "timeout_sec": 1,
    "max_output_bytes": 100,
    "inputs": {},
    "secrets": {},
    "required_secrets": [],
    "collect": [],
    "limits": {},
}
CHECK = {
    "type": "check",
    "execution_id": "e1",
    "script": "pass",
    "mode": "plan",
    "policy": "strict",
    "timeout_sec": 0.5,
    "names": [],
    "allow_modules": [],
    "tools": [],
}
PUT = {"type": "file_put", "execution_id": "e1", "path": "a", "mode": 0o644, "offset": 0, "content_base64": ""}


class RequestShapeTest(unittest.TestCase):
    def problem_of(self, line):
        with self.assertRaises(ValueError) as caught:
            request_shape.read(line)
        return str(caught.exception)

    def test_requests_of_each_type_are_taken_as_they_stand(self):
        sources = [{"name": "f", "source": "", "stub": ""}]
        rows = [
            EXECUTE,
            {**EXECUTE, "tools": [{}], "tool_sources": sources, "preamble": "", "postamble": "", "limits": {"pids": 9}},
            CHECK,
            {**CHECK, "whole": "", "preamble": None},
            PUT,
            {"type": "tool_result", "execution_id": "e1", "id": "1", "result": None},
            {"type": "cancel", "execution_id": "e1"},
            {"type": "ping", "nonce": ""},
            {"type": "reset", "nonce": "x" * 64},
        ]
        for frame in rows:
            with self.subTest(frame["type"]):
                self.assertEqual(request_shape.read(json.dumps(frame).encode()), frame)

    def test_a_type_that_is_not_known_is_not_looked_at(self):
        self.assertEqual(request_shape.read(b'{"type":"later","nonce":5}'), {"type": "later", "nonce": 5})

    def test_what_is_no_frame_is_refused(self):
        for line in (b"x", b"{", b"\xff", b"[" * 100_000, b'{"a":' + b"9" * 5000 + b"}", b'{"type":"\xed\xa0\x80"}', b'{"type":"ping","nonce":NaN}'):
            with self.subTest(line[:20]):
                self.assertEqual(self.problem_of(line), "a line is not JSON")
        for line in (b"[]", b"null", b"7", b"{}", b'{"type":null}', b'{"type":["ping"]}'):
            with self.subTest(line):
                self.assertEqual(self.problem_of(line), "a line is not a frame with a type")

    def test_each_field_that_the_broker_reads_is_looked_at_and_its_value_is_not_told(self):
        wrong = [
            (EXECUTE, "execution_id", ["", "x" * 257, 5, None]),
            (EXECUTE, "script", [None, 1]),
            (EXECUTE, "timeout_sec", [0, -1, "1", True, None, 10**400]),
            (EXECUTE, "max_output_bytes", [0, "s3cret", 1.5, True]),
            (EXECUTE, "inputs", [[], None]),
            (EXECUTE, "secrets", [{"A": 1}, []]),
            (EXECUTE, "required_secrets", ["A", [1]]),
            (EXECUTE, "collect", [None, [None]]),
            (EXECUTE, "limits", [None, {"pids": 0}, {"memory_bytes": "1"}]),
            (EXECUTE, "tools", ["s3cret", [1]]),
            (EXECUTE, "tool_sources", [[{}], [{"name": "f", "source": 1, "stub": ""}], {}]),
            (EXECUTE, "preamble", [1]),
            (CHECK, "names", [None]),
            (CHECK, "whole", [1, ["s3cret"]]),
            (CHECK, "policy", [None]),
            (CHECK, "tools", [None]),
            (PUT, "mode", [-1, 0o1000, "s3cret"]),
            (PUT, "offset", [-1, 0.5]),
            (PUT, "path", [None]),
            (PUT, "content_base64", [5]),
        ]
        for frame, name, values in wrong:
            for value in values:
                with self.subTest(f"{name}: {value!r}"):
                    line = json.dumps({**frame, name: value}).encode()
                    self.assertEqual(self.problem_of(line), f"{frame['type']} has an invalid {name}")

    def test_a_number_beyond_a_float_is_refused_wherever_it_is(self):
        for number in ("1e400", "-1E+999", "1" + "0" * 309 + ".0"):
            for field in ('"timeout_sec": 1', '"inputs": {}'):
                with self.subTest(f"{number[:8]} in {field}"):
                    value = number if "time" in field else f'{{"a": [{number}]}}'
                    line = json.dumps(EXECUTE).replace(field, f"{field.partition(':')[0]}: {value}").encode()
                    self.assertEqual(self.problem_of(line), "a number is beyond the range of a float")
            answer = b'{"type":"tool_result","execution_id":"e1","id":"1","result":%s}' % number.encode()
            self.assertEqual(self.problem_of(answer), "a number is beyond the range of a float")

    def test_numbers_that_a_float_carries_are_taken(self):
        answer = b'{"type":"tool_result","execution_id":"e1","id":"1","result":[1e308,5e-324,1e-400,-0.0,123.25]}'
        self.assertEqual(request_shape.read(answer)["result"], [1e308, 5e-324, 0.0, 0.0, 123.25])
