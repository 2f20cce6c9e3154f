/* A host process with one Sandglass, for light load and faults from the driver. Arguments: engine module, engine state. */
import { setImmediate } from 'node:timers/promises'
import { z } from 'zod'
import {
  defineTool,
  ExecutionMode,
  type ExecutionResult,
  jsonlStore,
  SandglassError,
  type Sandglass,
} from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import type { EngineUnderTest } from '../adversarial/driver/engine.ts'
import { eventually } from '../../test/support/eventually.ts'
import type { HostAnswer, HostCall, Outcome, Script } from './host-calls.ts'
import { countInSessions } from './sessions.ts'

const MiB = 1024 * 1024
const REST_MS = 60_000
const TRANSFER_BYTES = 16 * MiB
const [, , module = '', state = ''] = process.argv
const { openEngine } = (await import(module)) as { openEngine: (state: string) => EngineUnderTest }
const runs = new Map<number, AbortController>()
const kept: Buffer[] = []
let opened: Sandglass | undefined

const price = defineTool({
  name: 'price',
  description: 'Unit price in EUR',
  effect: 'read',
  input: z.object({ sku: z.string() }),
  execute: ({ sku }) => sku.length,
})

const SCRIPTS: Readonly<Record<Exclude<Script, 'transfer' | 'sessions'>, (seconds: number) => string>> = {
  short: () => 'emit_result(price(sku="abc"))',
  compute: (seconds) => makeLoop(seconds, 'sum(range(2000))'),
  tools: (seconds) => makeLoop(seconds, 'price(sku="abc")'),
  grow: (seconds) => makeLoop(seconds, 'kept.append(bytearray(256 * 1024))'),
}

process.on('message', (call: HostCall) => void serve(call))
process.on('disconnect', () => process.exit(0))

async function serve(call: HostCall): Promise<void> {
  try {
    tell({ number: call.number, outcome: await outcomeOf(call) })
  } catch (error) {
    const code = error instanceof SandglassError ? error.code : 'no SandglassError'
    const words = error instanceof Error ? error.message : String(error)
    tell({ number: call.number, outcome: { said: `threw ${code}: ${words}`, sandbox: '' } })
  }
}

async function outcomeOf(call: HostCall): Promise<Outcome> {
  if (call.call === 'open') {
    // Each sandbox serves only a few runs, so that new ones are made during a fault.
    // The first Pyodide sandbox waits for its snapshot, which takes long on a busy machine.
    const checkoutTimeoutMs = 120_000
    opened = await openEngine(state).open({ poolSize: 2, maxOverflow: 1, maxUses: 3, checkoutTimeoutMs })
    return { said: 'opened', sandbox: '' }
  }
  if (call.call === 'clock') return { said: String(Date.now()), sandbox: '' }
  if (call.call === 'grow') return grow()
  if (opened === undefined) throw new Error('send the call `open` first')
  if (call.call === 'rest') return rest(opened)
  if (call.call === 'run') {
    const { script } = call
    if (script === 'transfer') return transfer(opened, call)
    return script === 'sessions' ? holdSessions(opened, call) : run(opened, script, call)
  }
  if (call.call === 'solve') return solve(opened, call.journal)
  if (call.call === 'abort') runs.get(call.run)?.abort()
  if (call.call === 'close') await opened.close()
  return { said: 'done', sandbox: '' }
}

type RunCall = HostCall & { readonly call: 'run' }

async function run(sandglass: Sandglass, script: keyof typeof SCRIPTS, call: RunCall): Promise<Outcome> {
  const stop = new AbortController()
  runs.set(call.number, stop)
  let sandbox = ''
  try {
    const result = await sandglass.run(SCRIPTS[script](call.seconds), {
      tools: [price],
      toolLimits: { maxCalls: 1_000_000 },
      limits: { executionTimeoutSec: call.deadlineSec },
      signal: stop.signal,
      ...(script === 'short' ? { checkoutTimeoutMs: 30_000 } : {}),
      onEvent: (event) => {
        if (event.type === 'started') sandbox = event.sandboxId
        if (event.type === 'intermediate') tell({ number: call.number, begun: sandbox })
      },
    })
    return resultOf(result)
  } finally {
    runs.delete(call.number)
  }
}

/** Repeatedly sends a file into a workspace and reads it back, while a program runs there. */
async function transfer(sandglass: Sandglass, { number, seconds }: RunCall): Promise<Outcome> {
  const stop = new AbortController()
  runs.set(number, stop)
  const { signal } = stop
  try {
    await using workspace = await sandglass.workspace({ signal })
    const program = await workspace.start('cat')
    tell({ number, begun: workspace.id })
    const until = performance.now() + seconds * 1000
    while (performance.now() < until) {
      await workspace.put({ file: new Uint8Array(TRANSFER_BYTES) }, { signal })
      let received = 0
      for await (const piece of workspace.read('file', { signal })) received += piece.length
      if (received !== TRANSFER_BYTES) throw new Error(`${received} of ${TRANSFER_BYTES} bytes came back`)
    }
    const beside = program.status === 'running' ? 'with' : 'without'
    return { said: `completed, ${beside} its program`, sandbox: workspace.id }
  } finally {
    runs.delete(number)
  }
}

async function holdSessions(sandglass: Sandglass, { number, seconds }: RunCall): Promise<Outcome> {
  const stop = new AbortController()
  runs.set(number, stop)
  try {
    const onBegun = ({ id }: { readonly id: string }): void => tell({ number, begun: id })
    return await countInSessions(sandglass, { seconds, signal: stop.signal, onBegun })
  } finally {
    runs.delete(number)
  }
}

async function rest(sandglass: Sandglass): Promise<Outcome> {
  const idle = (): string | undefined => (sandglass.stats().idle >= 2 ? undefined : 'the pool is not full')
  return { said: (await eventually(idle, REST_MS)) ?? 'rests', sandbox: '' }
}

async function solve(sandglass: Sandglass, journal: string): Promise<Outcome> {
  const model = scriptedModel('```python\nemit_result(price(sku="abc"))\n```')
  const { record, error } = await sandglass.solve('What does abc cost?', {
    model,
    tools: [price],
    mode: ExecutionMode.PLAN,
    policy: 'off',
    maxRetries: 0,
    journal: jsonlStore(journal),
  })
  return { said: error === null ? record.status : `${record.status}: ${error}`, sandbox: '' }
}

/** Takes memory in small blocks, so that the host still answers, until the kernel ends the host. */
async function grow(): Promise<Outcome> {
  for (;;) {
    kept.push(Buffer.alloc(4 * MiB, 1))
    await setImmediate()
  }
}

function resultOf({ status, errorKind, error, ending, sandbox }: ExecutionResult): Outcome {
  const cause = [ending.cause, ending.signal ?? '', `by ${ending.by}`].filter(Boolean).join(' ')
  return { said: errorKind === null ? status : `${status}/${errorKind}: ${cause}: ${error}`, sandbox: sandbox.id }
}

/** A script with light load: it works briefly, then sleeps, in a loop. */
function makeLoop(seconds: number, work: string): string {
  return `import time
kept = []
emit_intermediate("begun")
until = time.monotonic() + ${seconds}
while time.monotonic() < until:
    ${work}
    time.sleep(0.01)
emit_result("done")`
}

function tell(answer: HostAnswer): void {
  process.send?.(answer)
}
