import { resolveLimits, type SandboxSpec, sandboxLimits, scratchSizes } from '../../sandbox/index.ts'
import { messageOf, SandglassError } from '../../errors/index.ts'
import { LineSplitter } from '../../protocol/index.ts'
import { bundle } from './directory-files.ts'
import { commandFor, common, type Ground, planFor } from './ground.ts'
import type { StartMessage } from './guest/wire.ts'
import type { GuestProcess } from './guest-interface.ts'
import { startGuest } from './guest-process.ts'
import type { Snapshot } from './snapshot-cache.ts'
import { withMachineCode } from './guest/snapshot-parts.ts'
import { cut } from './text.ts'
import { TRAINING } from './training.ts'

const MiB = 1024 * 1024
const MAX_FRAME_BYTES = 1024 * 1024
const MAX_WHY = 400

/** Why a guest made nothing. */
interface NotMade {
  readonly why: string
  /** Whether no other attempt with this Node would come to more. */
  readonly isLasting: boolean
}

/** A snapshot that is in the cache, to be looked at, or one that was made now. */
export async function findSnapshot(at: Ground, timeoutMs: number): Promise<Snapshot> {
  if (at.cache.has(at.key)) return { path: at.cache.pathOf(at.key) }
  return makeSnapshot(at, timeoutMs)
}

/**
 * Makes a snapshot in processes of its own, and keeps it where that can be done. One that has no machine code because the
 * machine was short of something is good for now, and not kept: who comes later may have more luck.
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
  if (!(made instanceof Uint8Array)) {
    throw new SandglassError('harness_start_failed', `Pyodide could not be loaded ${made.why}`)
  }
  const code = await train(at, made, timeoutMs)
  if (code instanceof Uint8Array) return at.cache.keep(at.key, withMachineCode(made, code))
  const snapshot = code.isLasting ? await at.cache.keep(at.key, made) : { bytes: made }
  return { ...snapshot, untrained: code.why }
}

/** The machine code of what scripts use, where this Node gives it away. */
async function train(at: Ground, snapshot: Uint8Array, timeoutMs: number): Promise<Uint8Array | NotMade> {
  const spec: SandboxSpec = { limits: sandboxLimits(resolveLimits()) }
  const nothing = bundle([])
  const plan = planFor(at, spec, { bytes: snapshot }, nothing, scratchSizes(spec.limits.diskBytes), [])
  return whatIsMade(at, { ...plan, task: 'train' }, [snapshot], timeoutMs, (guest) => {
    guest.send({ type: 'run', deadlineMs: timeoutMs, collect: [], collectMs: 0 })
    guest.sendToScript(Buffer.from(JSON.stringify(TRAINING)))
    answerCalls(guest)
    return guest.stderr
  }).catch((error: unknown) => ({ why: messageOf(error), isLasting: false }))
}

/** The bytes that a guest makes, from the stream that they come by; or why it made none. */
async function whatIsMade(
  at: Ground,
  plan: StartMessage,
  given: readonly Uint8Array[],
  timeoutMs: number,
  begin: (guest: GuestProcess) => NodeJS.ReadableStream,
): Promise<Uint8Array | NotMade> {
  const guest = startGuest(commandFor(at, await at.box(), undefined), plan, ...given)
  const timer = setTimeout(() => guest.kill(), timeoutMs)
  const chunks: Uint8Array[] = []
  let size = 0
  let refusal: string | undefined
  try {
    const source = begin(guest)
    for (const stream of [guest.frames, guest.stdout, guest.stderr]) {
      if (stream === source) stream.on('data', (chunk: Uint8Array) => void chunks.push(chunk))
      else stream.resume()
    }
    for await (const message of guest.control) {
      if (message.type === 'made') size = message.bytes
      if (message.type === 'no-machine-code') refusal = cut(String(message.reason), MAX_WHY)
    }
    const { code, signal, notStarted } = await guest.ended
    if (notStarted !== undefined) throw notStarted
    const made = Buffer.concat(chunks)
    if (made.length > 0 && made.length === size) return made
    const end = `(${signal ?? `exit code ${code}`})`
    // Who is killed might have gone on.
    if (refusal !== undefined && signal !== 'SIGKILL') return { why: `${refusal} ${end}`, isLasting: true }
    return { why: `${end}: ${guest.lastWords() || 'it said nothing'}`, isLasting: false }
  } finally {
    clearTimeout(timer)
    guest.destroy()
  }
}

/** Answers each call of the training script's tool with what it was given. A guest that says anything else is killed. */
export function answerCalls(guest: Pick<GuestProcess, 'frames' | 'sendToScript' | 'kill'>): void {
  const splitter = new LineSplitter(MAX_FRAME_BYTES)
  guest.frames.on('data', (chunk: Uint8Array) => {
    try {
      for (const line of splitter.push(chunk)) {
        const frame = JSON.parse(Buffer.from(line).toString('utf8')) as { type: string; id?: string; args?: object }
        if (frame.type !== 'tool_call') continue
        const answer = { type: 'tool_result', id: frame.id, result: frame.args }
        guest.sendToScript(Buffer.from(`${JSON.stringify(answer)}\n`))
      }
    } catch {
      guest.kill()
    }
  })
}
