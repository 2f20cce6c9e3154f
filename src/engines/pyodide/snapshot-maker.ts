import { SandglassError } from '../../errors/index.ts'
import { bundle } from './directory-files.ts'
import { commandFor, commonFields, type EngineEnvironment } from './environment.ts'
import type { StartMessage } from './guest/wire.ts'
import { startGuest } from './guest-process.ts'
import type { Snapshot } from './snapshot-cache.ts'

const MiB = 1024 * 1024

/** Returns the cached snapshot, not yet verified, or makes one. */
export async function findSnapshot(environment: EngineEnvironment, timeoutMs: number): Promise<Snapshot> {
  if (environment.cache.has(environment.key)) return { path: environment.cache.pathOf(environment.key) }
  return makeSnapshot(environment, timeoutMs)
}

/**
 * Makes a snapshot in a process of its own, and caches it if possible.
 * @throws SandglassError `harness_start_failed`, or `sandbox_setup_failed` if no process can be started.
 */
export async function makeSnapshot(environment: EngineEnvironment, timeoutMs: number): Promise<Snapshot> {
  const { files, bytes } = bundle(environment.harness)
  const plan: StartMessage = {
    ...commonFields(environment),
    task: 'snapshot',
    snapshot: null,
    files,
    fileBytes: bytes.length,
    limits: { memoryBytes: 1024 * MiB, scratch: {} },
    config: {},
    modules: [],
  }
  const guest = startGuest(commandFor(environment, await environment.bubblewrap(), undefined), plan, bytes)
  const timer = setTimeout(() => guest.kill(), timeoutMs)
  const chunks: Uint8Array[] = []
  let size = 0
  guest.stdout.resume()
  guest.stderr.resume()
  guest.frames.on('data', (chunk: Uint8Array) => void chunks.push(chunk))
  try {
    for await (const message of guest.control) if (message.type === 'snapshot') size = message.bytes
    const { code, signal, notStarted } = await guest.ended
    if (notStarted !== undefined) throw notStarted
    const snapshot = Buffer.concat(chunks)
    if (snapshot.length > 0 && snapshot.length === size) return await environment.cache.keep(environment.key, snapshot)
    throw new SandglassError(
      'harness_start_failed',
      `Pyodide could not be loaded (${signal ?? `exit code ${code}`}): ${guest.lastOutput() || 'its stderr is empty'}`,
    )
  } finally {
    clearTimeout(timer)
    guest.destroy()
  }
}
