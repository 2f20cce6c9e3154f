import { messageOf, SandglassError } from '../../errors/index.ts'
import { LineSplitter, type ReadyFrame } from '../../protocol/index.ts'
import type { GuestMessage } from './guest/wire.ts'
import type { GuestProcess } from './guest-interface.ts'

/** An instance that waits for its script. */
export interface Spare {
  readonly guest: GuestProcess
  readonly python: string
  readonly loaded: Pick<ReadyFrame, 'tools' | 'preload'>
  readonly checks: ReadyFrame['checks']
}

/** Starts a guest that skips the modules in `fatal`, which end its process when they are loaded. */
export type StartGuest = (fatal: readonly string[]) => GuestProcess

const MAX_LOADING_LINE = 64 * 1024

/**
 * Makes an instance. A module that ends the process when it is loaded is added to `fatal` and skipped from then on.
 * @throws SandglassError `harness_start_failed` if it does not become ready, `sandbox_setup_failed` if it cannot be started.
 */
export async function makeSpare(start: StartGuest, fatal: string[], timeoutMs: number): Promise<Spare> {
  for (;;) {
    const guest = start(fatal)
    let timedOut = false
    const timer = setTimeout(() => {
      timedOut = true
      guest.kill()
    }, timeoutMs)
    try {
      const result = await waitForReady(guest)
      if ('python' in result) return result
      const { loading } = result
      if (loading !== undefined && !fatal.includes(loading) && !timedOut) {
        fatal.push(loading)
        continue
      }
      const { code, signal, notStarted } = await guest.ended
      if (notStarted !== undefined) throw notStarted
      const how = timedOut ? `it was not ready within ${timeoutMs} ms` : `it ended (${signal ?? `exit code ${code}`})`
      const stderr = guest.lastOutput()
      throw new SandglassError(
        'harness_start_failed',
        `an instance of Pyodide did not become ready: ${how}${stderr === '' ? '' : `; its stderr: ${stderr}`}`,
      )
    } catch (error) {
      guest.destroy()
      if (error instanceof SandglassError) throw error
      throw new SandglassError('harness_start_failed', messageOf(error), { cause: error })
    } finally {
      clearTimeout(timer)
    }
  }
}

/** Waits for `ready`. If the process ends first, returns the module that it was loading. Discards its output. */
async function waitForReady(guest: GuestProcess): Promise<Spare | { readonly loading: string | undefined }> {
  let loading: string | undefined
  const splitter = new LineSplitter(MAX_LOADING_LINE)
  const onFrames = (chunk: Uint8Array): void => {
    try {
      for (const line of splitter.push(chunk)) loading = loadingName(line) ?? loading
    } catch {
      guest.kill() // a line without an end
    }
  }
  const drop = (): void => {}
  guest.frames.on('data', onFrames)
  guest.stdout.on('data', drop)
  guest.stderr.on('data', drop)
  try {
    for (;;) {
      const next = await guest.control.next()
      if (next.done === true) {
        await guest.ended
        return { loading }
      }
      const spare = spareOf(guest, next.value)
      if (spare !== undefined) return spare
    }
  } finally {
    guest.frames.off('data', onFrames)
    guest.stdout.off('data', drop)
    guest.stderr.off('data', drop)
  }
}

function spareOf(guest: GuestProcess, message: GuestMessage): Spare | undefined {
  if (message.type !== 'ready') return undefined
  const { python, loaded, checks } = message
  return { guest, python, loaded: loaded as Spare['loaded'], checks }
}

function loadingName(line: Uint8Array): string | undefined {
  try {
    const value = JSON.parse(Buffer.from(line).toString('utf8')) as { type?: unknown; name?: unknown }
    return value.type === 'loading' && typeof value.name === 'string' ? value.name : undefined
  } catch {
    return undefined
  }
}
