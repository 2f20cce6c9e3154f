import assert from 'node:assert/strict'
import { z } from 'zod'
import { defineTool } from '../../../../src/tools/index.ts'
import { ALL, type FreshCase, LINUX } from '../fresh-case.ts'

const SECRET = 'pä"ss/w+rd \\&=?~key-93'

/** Counts the executions of the tools of these cases. */
const executed = { count: 0, whenSettled: Number.NaN }

const count = defineTool({
  name: 'count',
  description: 'Counts its calls.',
  input: z.looseObject({ n: z.number().optional() }),
  execute: () => {
    executed.count += 1
    return executed.count
  },
})

const fails = defineTool({
  name: 'fails',
  description: 'Fails.',
  input: z.object({}),
  secrets: ['FRESH_TOOL_SECRET'],
  execute: () => {
    throw new Error(`with ${process.env['FRESH_TOOL_SECRET']} of the tool`, { cause: new Error('host cause /root') })
  },
})

const RAW_CALL = String.raw`
import json
ends = [fd for fd in range(3, 10) if tried(lambda: stat.S_ISSOCK(os.fstat(fd).st_mode)) is True]
def raw(line):
    data = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
    for fd in ends:
        os.write(fd, data)
`

/** Attacks on tool calls and on the redaction of secrets. */
export const TOOLS_AND_SECRETS: readonly FreshCase[] = [
  {
    id: 'TOOL-01',
    claim: 'names are looked up in a map of this run alone; the answer is `unknown_tool`, and nothing is executed',
    title: 'calls __proto__, constructor, toString and a tool of another run by frames of its own',
    engines: LINUX,
    options: { tools: [count] },
    script: `${RAW_CALL}
before = count()
for n, name in enumerate(("__proto__", "constructor", "toString", "hasOwnProperty", "fails", "", "count\\u0000", "COUNT", "emit_result", "execute")):
    raw({"type": "tool_call", "id": f"x{n}", "call_id": f"x{n}", "name": name, "args": {}, "arguments": {}})
emit_result(count() - before)
`,
    expected: { status: 'completed', data: 1 },
    host: ({ first }) => {
      const others = first.result?.toolCalls.filter(({ name }) => name !== 'count') ?? []
      // The broker drops a frame whose name is empty.
      const names = [
        '__proto__',
        'constructor',
        'toString',
        'hasOwnProperty',
        'fails',
        'count\u0000',
        'COUNT',
        'emit_result',
        'execute',
      ]
      assert.deepEqual(
        others.map(({ name, error }) => [name, error?.code]),
        names.map((name) => [name, 'unknown_tool']),
      )
    },
  },
  {
    id: 'TOOL-02',
    claim: 'the key `__proto__` is refused at any depth',
    title: 'pollutes prototypes by arguments that the schema lets through',
    engines: ALL,
    options: { tools: [count] },
    script: String.raw`
came = []
for key in ("__proto__",):
    for given in ({key: {"polluted": 1}}, {"a": {key: {"polluted": 1}}}, {"a": [[{"b": {key: 1}}]]}):
        try:
            count(**given)
            came.append("served")
        except ToolError as error:
            came.append(error.code)
count(constructor={"prototype": {"polluted": 1}})
emit_result(came)
`,
    expected: { status: 'completed', data: ['invalid_arguments', 'invalid_arguments', 'invalid_arguments'] },
    host: () => assert.equal(({} as Record<string, unknown>)['polluted'], undefined),
  },
  {
    id: 'TOOL-03',
    claim: 'an id that came before is not served again',
    title: 'repeats the frame of a call, byte for byte, and under the ids of calls to come',
    engines: LINUX,
    options: { tools: [count] },
    script: String.raw`
lines = []
real = os.write
def spy(fd, data):
    lines.append((fd, bytes(data)))
    return real(fd, data)
os.write = spy
first = count(n=1)
os.write = real
calls = [(fd, line) for fd, line in lines if b"tool_call" in line]
for fd, line in calls * 5:
    real(fd, line)
emit_result([len(calls), count(n=2) - first])
`,
    expected: { status: 'completed', data: [1, 1] },
  },
  {
    id: 'TOOL-04',
    claim:
      "the script gets a message, never a stack; values of the run's secrets and of those that the tool names are redacted",
    title: "reads all of a tool's error: text, code, arguments, cause, context and dictionary",
    engines: ALL,
    options: { tools: [fails] },
    script: String.raw`
try:
    fails()
except ToolError as error:
    emit_result([str(error), error.code, [str(one) for one in error.args], sorted(vars(error)), str(error.__cause__), str(error.__context__)])
`,
    expected: {
      status: 'completed',
      data: [
        'with [redacted:FRESH_TOOL_SECRET] of the tool',
        'tool_failed',
        ['with [redacted:FRESH_TOOL_SECRET] of the tool'],
        ['code'],
        'None',
        'None',
      ],
    },
  },
  {
    id: 'TOOL-05',
    claim: 'nothing is answered',
    title: 'calls a tool from a forked child, and from a daemon after the end of the run',
    engines: LINUX,
    options: { tools: [count] },
    script: `${RAW_CALL}
def child():
    try:
        count()
        os._exit(1)
    except ToolError as error:
        os._exit(7 if error.code == "wrong_process" else 2)
emit_result(in_child(child))
alive, held = os.pipe()
if os.fork() == 0:
    os.setsid()
    os.close(held)
    os.read(alive, 1)  # nothing comes until the script's own process has ended
    for n in range(2000):
        raw({"type": "tool_call", "id": f"late{n}", "call_id": f"late{n}", "name": "count", "args": {}})
`,
    // The run is active until the broker has killed the daemon: calls in that time may be served or cut off.
    expected: { status: 'completed', data: 7, mayWarn: ['tool_calls_unanswered'] },
    settled: () => void (executed.whenSettled = executed.count),
    // The next run has the tool; its two calls are the only further ones.
    next: 'before = count()\nemit_result(count() - before)',
    expectedNext: { status: 'completed', data: 1 },
    host: () => assert.equal(executed.count - executed.whenSettled, 2),
  },
  {
    id: 'TOOL-06',
    claim: '10,000 calls and 32 at a time by default',
    title: 'calls a tool 550 times from eight threads, of 500 allowed',
    engines: LINUX,
    options: { tools: [count], toolLimits: { maxCalls: 500 }, limits: { executionTimeoutSec: 60 } },
    script: String.raw`
import threading
codes = {}
lock = threading.Lock()
def calls():
    for _ in range(69):
        try:
            count()
            code = "served"
        except ToolError as error:
            code = error.code
        with lock:
            codes[code] = codes.get(code, 0) + 1
threads = [threading.Thread(target=calls) for _ in range(8)]
for one in threads: one.start()
for one in threads: one.join()
emit_result(codes)
`,
    expected: { status: 'completed', data: { served: 500, call_limit: 52 } },
  },
  {
    id: 'SECRET-01',
    claim: 'A script that outputs its own secrets in other forms than those of [docs/redaction.md](docs/redaction.md)',
    title: 'outputs a secret as text, as JSON, in URLs (lower-case escapes too) and in base64 at each offset',
    engines: ALL,
    options: { secrets: { K: SECRET } },
    script: String.raw`
import base64, json, urllib.parse as url
K = os.environ["K"]
quoted = url.quote(K, safe="")
lower = "".join(c.lower() if quoted[max(0, n - 1)] == "%" or quoted[max(0, n - 2)] == "%" else c for n, c in enumerate(quoted))
said = [K, json.dumps(K), json.dumps(K, ensure_ascii=False), url.quote(K), quoted, url.quote_plus(K), lower, json.dumps({"a": [K]})]
said += [base64.b64encode(b"x" * n + K.encode() + b"yz").decode() for n in range(3)] + [base64.urlsafe_b64encode(K.encode()).decode()]
emit_result(said)
`,
    expected: {
      status: 'completed',
      data: {
        asymmetricMatch: (said: unknown) =>
          Array.isArray(said) && said.length === 12 && said.every((one) => String(one).includes('[redacted:K]')),
      },
    },
  },
  {
    id: 'SECRET-03',
    claim: 'are decoded, however often they were escaped again',
    claimIn: 'docs/redaction.md',
    title: 'outputs a secret with each character escaped, and with hexadecimal digits of mixed case',
    engines: ALL,
    options: { secrets: { K: SECRET } },
    script: String.raw`
K = os.environ["K"]
url = "".join(f"%{byte:02X}" for byte in K.encode())
mixed = "".join(f"%{byte:02X}" if n % 2 else f"%{byte:02x}" for n, byte in enumerate(K.encode()))
json_all = "".join(f"\\u{ord(one):04x}" for one in K)
emit_result([url, mixed, json_all])
`,
    expected: {
      status: 'completed',
      data: {
        asymmetricMatch: (said: unknown) =>
          Array.isArray(said) && said.length === 3 && said.every((one) => String(one) === '[redacted:K]'),
      },
    },
  },
  {
    id: 'SECRET-02',
    claim: 'Or a script that writes them into collected files (reported as the warning `secret_in_file`)',
    title: 'outputs a secret in pieces, and in names: labels, levels, keys, threads, errors, files, links, tools',
    engines: LINUX,
    options: { secrets: { P: 'plainsecretvalue123' }, collect: ['out/**'], tools: [count] },
    script: String.raw`
import threading
P = os.environ["P"]
for piece in P:
    os.write(1, piece.encode())
    time.sleep(0.002)
os.write(1, P[:9].encode()); os.write(2, b"|"); os.write(1, P[9:].encode())
emit_log("m", P)
emit_intermediate(P, {P: [P]})
os.makedirs("out/" + P)
open("out/" + P + "/f", "w").write(P)
os.truncate("out/" + P + "/f", len(P))
open("out/big" + P, "wb").truncate(5 << 20)
count(**{"x" + P: P})
t = threading.Thread(target=lambda: 1 / 0, name=P); t.start(); t.join()
emit_result(1)
raise type(P, (Exception,), {})(P)
`,
    expected: {
      status: 'completed',
      data: 1,
      warnings: ['collect_skipped', 'error_after_result', 'secret_in_file'],
    },
    host: ({ first }) => {
      const { files = [], ...rest } = first.result ?? {}
      const told = JSON.stringify([rest, files.map(({ path }) => path), first.events])
      assert.equal(told.includes('plainsecretvalue123'), false)
      assert.equal(files.length, 1)
    },
  },
  {
    id: 'SECRET-04',
    claim: 'A value that ends within an escape',
    claimIn: 'docs/redaction.md',
    title: 'outputs secrets that end within an escape, followed by text that completes it',
    engines: ALL,
    options: { secrets: { A: 'k3y!Zw9~%4', B: String.raw`k3y!Zw9~\u00`, C: 'k3y!Zw9~&am', D: 'k3y!Zw9~%5' } },
    script: String.raw`
import html, json, urllib.parse as url
said = []
for name, more in (("A", "1"), ("B", "41"), ("C", "p;"), ("D", "cn")):
    text = os.environ[name] + more
    said += [text, repr(text), json.dumps(json.dumps(text)), url.quote(text), html.escape(text)]
for text in said:
    print(text)
emit_result(said)
`,
    expected: {
      status: 'completed',
      data: {
        asymmetricMatch: (said: unknown) =>
          Array.isArray(said) && said.length === 20 && said.every((one) => String(one).includes('[redacted:')),
      },
    },
    host: ({ first }) => {
      assert.equal(JSON.stringify([first.result, first.events]).includes('k3y!'), false)
    },
  },
  {
    id: 'SECRET-05',
    claim: 'a part of the value with 4 characters also counts',
    claimIn: 'docs/redaction.md',
    title:
      'outputs a secret across the cut of labels and levels at each offset, and in an error and a path of a warning',
    engines: ALL,
    options: { secrets: { K: 'sk-0123456789' } },
    script: String.raw`
K = os.environ["K"]
for n in range(len(K)):
    emit_intermediate("a" * (1024 - n) + K + "b", 1)
    emit_log("m", "l" * (64 - n) + K + "b")
emit_result({"p" * 390 + K: float("nan")})
raise ValueError("a" * 4090 + K + "b" * 20000 + K + "c" * 4090)
`,
    expected: {
      status: 'completed',
      data: { ['p'.repeat(390) + '[redacted:K]']: null },
      warnings: ['error_after_result', 'nan_as_null'],
    },
    host: ({ first }) => {
      assert.equal(JSON.stringify([first.result, first.events]).includes('sk-0'), false)
    },
  },
]
