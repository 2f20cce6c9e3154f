import { resolveLimits, type SandboxSpec, sandboxLimits, scratchSizes } from '../../sandbox/index.ts'
import { messageOf, SandglassError } from '../../errors/index.ts'
import { LineSplitter } from '../../protocol/index.ts'
import { bundle } from './directory-files.ts'
import { commandFor, common, type Ground, planFor } from './ground.ts'
import type { GuestMessage, StartMessage } from './guest/wire.ts'
import type { GuestProcess } from './guest-interface.ts'
import { startGuest } from './guest-process.ts'
import type { Snapshot } from './snapshot-cache.ts'
import { withMachineCode } from './guest/snapshot-parts.ts'
import { TRAINING } from './training.ts'

const MiB = 1024 * 1024
const MAX_FRAME_BYTES = 1024 * 1024

/** A snapshot that is in the cache, to be looked at, or one that was made now. */
export async function findSnapshot(at: Ground, timeoutMs: number): Promise<Snapshot> {
  if (at.cache.has(at.key)) return { path: at.cache.pathOf(at.key) }
  return makeSnapshot(at, timeoutMs)
}

/**
 * Makes a snapshot in processes of its own, and keeps it where that can be done.
 * @throws SandglassError `harness_start_failed`, or `sandbox_setup_failed` when no process can be started.
 */
export async function makeSnapshot(at: Ground, timeoutMs: number): Promise<Snapshot> {
  const { files, bytes } = bundle(at.harness)
  const plan: StartMessage = {
    ...common(at),
    task: 'snapshot',
    snapshot: null,
    files,
    fileBytes: bytes.length,
    limits: { memoryBytes: 1024 * MiB, scratch: {} },
    config: {},
    modules: [],
  }
  const made = await whatIsMade(at, plan, [bytes], timeoutMs, (guest) => guest.frames)
  if (made instanceof Uint8Array) return at.cache.keep(at.key, await trained(at, made, timeoutMs))
  throw new SandglassError('harness_start_failed', `Pyodide could not be loaded ${made.why}`)
}

/** A snapshot with the machine code of what scripts use, as far as this Node gives it away. */
async function trained(at: Ground, snapshot: Uint8Array, timeoutMs: number): Promise<Uint8Array> {
  const spec: SandboxSpec = { limits: sandboxLimits(resolveLimits()) }
  const nothing = bundle([])
  const plan = planFor(at, spec, { bytes: snapshot }, nothing, scratchSizes(spec.limits.diskBytes), [])
  const code = await whatIsMade(at, { ...plan, task: 'train' }, [snapshot], timeoutMs, (guest) => {
    guest.send({ type: 'run', deadlineMs: timeoutMs, collect: [], collectMs: 0 })
    guest.sendToScript(Buffer.from(JSON.stringify(TRAINING)))
    answerCalls(guest)
    return guest.stderr
  }).catch((error: unknown) => ({ why: messageOf(error) }))
  return code instanceof Uint8Array ? withMachineCode(snapshot, code) : snapshot
}

/** The bytes that a guest makes, from the stream that they come by; or why it made none. */
async function whatIsMade(
  at: Ground,
  plan: StartMessage,
  given: readonly Uint8Array[],
  timeoutMs: number,
  begin: (guest: GuestProcess) => NodeJS.ReadableStream,
): Promise<Uint8Array | { readonly why: string }> {
  const guest = startGuest(commandFor(at, await at.box(), undefined), plan, ...given)
  const timer = setTimeout(() => guest.kill(), timeoutMs)
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    const source = begin(guest)
    for (const stream of [guest.frames, guest.stdout, guest.stderr]) {
      if (stream === source) stream.on('data', (chunk: Uint8Array) => void chunks.push(chunk))
      else stream.resume()
    }
    for await (const message of guest.control) size = sizeIn(message) ?? size
    const { code, signal, notStarted } = await guest.ended
    if (notStarted !== undefined) throw notStarted
    const made = Buffer.concat(chunks)
    if (made.length > 0 && made.length === size) return made
    return { why: `(${signal ?? `exit code ${code}`}): ${guest.lastWords() || 'it said nothing'}` }
  } finally {
    clearTimeout(timer)
    guest.destroy()
  }
}

function sizeIn(message: GuestMessage): number | undefined {
  return message.type === 'made' ? message.bytes : undefined
}

/** Answers each call of the training script's tool with what it was given. */
function answerCalls(guest: GuestProcess): void {
  const splitter = new LineSplitter(MAX_FRAME_BYTES)
  guest.frames.on('data', (chunk: Uint8Array) => {
    for (const line of splitter.push(chunk)) {
      const frame = JSON.parse(Buffer.from(line).toString('utf8')) as { type: string; id?: string; args?: object }
      if (frame.type !== 'tool_call') continue
      const answer = { type: 'tool_result', id: frame.id, result: frame.args }
      guest.sendToScript(Buffer.from(`${JSON.stringify(answer)}\n`))
    }
  })
}
