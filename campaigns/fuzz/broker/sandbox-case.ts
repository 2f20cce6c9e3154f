import { deepStrictEqual, ok } from 'node:assert/strict'
import { ScriptExecutor } from '../../../src/executor/index.ts'
import { decodeLine, LineSplitter } from '../../../src/protocol/index.ts'
import {
  type Ending,
  resolveLimits,
  type Sandbox,
  type SandboxEngine,
  sandboxLimits,
  type SandboxSpec,
} from '../../../src/sandbox/index.ts'
import { bridgedTools, defineTool, prepareTools } from '../../../src/tools/index.ts'
import { CHILD_CORPUS, HOST_CORPUS, OWN_ID } from '../corpus.ts'
import type { CaseMaker, FuzzCase } from '../fuzz-case.ts'
import { Hang } from '../hang.ts'
import { checkStatus } from '../host/result-check.ts'
import { mutatedStream } from '../lines.ts'
import type { Sandglass } from '../../../src/sandglass.ts'
import { cellCase } from './cell-case.ts'
import { cut } from '../mutate-bytes.ts'
import type { Random } from '../../../test/support/random.ts'

const SPEC: SandboxSpec = { limits: sandboxLimits(resolveLimits()) }
/** The time in which a sandbox must answer or end. */
const SETTLE_MS = 30_000
const LAST_LINE = Buffer.from('\n{"type":"ping","nonce":"fuzz-end"}\n')
const double = defineTool({ name: 'double', description: 'Twice.', input: { type: 'object' }, execute: () => 42 })

/** Cases against a real broker in a real sandbox of an engine. */
export function sandboxCases(engine: SandboxEngine, sg: Sandglass): CaseMaker {
  return (random) => {
    if (random.oneIn(3)) return cellCase(sg, random)
    return random.oneIn(2) ? channelCase(engine, random) : scriptCase(engine, random)
  }
}

/** Garbage on the channel is answered, or ends the sandbox with one line: no traceback and no hang. */
function channelCase(engine: SandboxEngine, random: Random): FuzzCase {
  const pieces = cut(mutatedStream(HOST_CORPUS, random, 8), random, 64)
  return {
    property: 'a real broker serves the valid lines of garbage, or ends with one line that gives the reason',
    pieces,
    async check() {
      await using sandbox = await engine.create(SPEC)
      const talking = talk(sandbox, pieces)
      const ending = await within(Promise.race([talking, sandbox.closed]))
      if (ending === undefined) await runsOn(sandbox, { mayBeBusy: true })
      else checkEnding(ending)
    },
  }
}

/** Bytes that a script writes to the harness's own socket cost it no more than its run. */
function scriptCase(engine: SandboxEngine, random: Random): FuzzCase {
  const bytes = mutatedStream(CHILD_CORPUS, random, 12)
  const hasTools = random.oneIn(2)
  const after = random.pick(['emit_result(1)', 'os._exit(3)', 'os.close(3)', 'os.kill(os.getpid(), 9)', 'pass'])
  const script = `import base64, os\nrest = base64.b64decode(garbage)\nwhile rest:\n    rest = rest[os.write(3, rest):]\n${after}`
  return {
    property: 'frames that a script wrote itself lead to a documented status, and the next run succeeds',
    pieces: [bytes],
    async check() {
      await using sandbox = await engine.create(SPEC)
      const executor = new ScriptExecutor({
        mode: 'interactive',
        limits: { executionTimeoutSec: 5, maxOutputBytes: 65_536 },
      })
      const result = await executor.run({
        sandbox,
        script,
        executionId: OWN_ID,
        inputs: { garbage: bytes.toString('base64') },
        ...(hasTools ? { tools: bridgedTools(prepareTools([double])) } : {}),
      })
      checkStatus(result)
      ok(result.status !== 'sandbox-lost', `the broker did not survive: ${result.error}`)
      await runsOn(sandbox, { mayBeBusy: false })
    },
  }
}

/** A sandbox that fails gives the reason in one line; one that ends without a message ends with exit code 0. */
export function checkEnding({ cause, exitCode, message }: Ending): void {
  const stderr = message ?? ''
  if (stderr === '') deepStrictEqual([cause, exitCode], ['exit', 0], 'it ended without a message')
  ok(!stderr.includes('Traceback'), stderr)
  ok(!stderr.includes('\n'), `more than one line: ${stderr}`)
}

/** A request after the garbage returns its result; it may be refused while a run from the garbage may be active. */
async function runsOn(sandbox: Sandbox, { mayBeBusy }: { readonly mayBeBusy: boolean }): Promise<void> {
  const next = await new ScriptExecutor({ limits: { executionTimeoutSec: 5 } }).run({
    sandbox,
    script: 'emit_result(7)',
  })
  checkStatus(next)
  const came = [next.status, next.errorKind, next.finalData]
  const isRefused = next.errorKind === 'invalid_request'
  deepStrictEqual(
    came,
    mayBeBusy && isRefused ? ['failed', 'invalid_request', null] : ['completed', null, 7],
    next.error ?? '',
  )
}

/** Sends all pieces and a ping; resolves with undefined when the ping is answered. */
async function talk({ channel }: Sandbox, pieces: readonly Uint8Array[]): Promise<undefined> {
  const sending = (async () => {
    for (const piece of pieces) await channel.send(piece)
    await channel.send(LAST_LINE)
  })()
  sending.catch(() => undefined) // a broker that refused a request reads no more
  const splitter = new LineSplitter(1 << 20)
  for (let chunk = await channel.receive(); chunk !== null; chunk = await channel.receive()) {
    for (const line of splitter.push(chunk)) {
      const decoded = decodeLine(line)
      ok(decoded.kind === 'frame', `no frame: ${line.subarray(0, 400).toString()}`)
      if (decoded.frame.type === 'pong' && decoded.frame.nonce === 'fuzz-end') return undefined
    }
  }
  return new Promise<never>(() => {}) // `sandbox.closed` reports the end
}

async function within<T>(work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Hang(`nothing settled within ${SETTLE_MS} ms`)), SETTLE_MS)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}
