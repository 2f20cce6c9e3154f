import type { ChildProcess } from 'node:child_process'
import { Readable } from 'node:stream'
import type { SandglassError } from '../../errors/index.ts'
import type { GuestProcess } from './guest-interface.ts'

/** A guest without a process: Node tells why only after the call that was to start it. */
export function neverStarted(child: ChildProcess, why: (error: unknown) => SandglassError): GuestProcess {
  const ended = new Promise<Awaited<GuestProcess['ended']>>((resolve) => {
    child.once('error', (error) => {
      // Without descriptors Node has made none of them.
      for (const stream of (child.stdio as ChildProcess['stdio'] | undefined) ?? []) stream?.destroy()
      resolve({ code: null, signal: null, notStarted: why(error) })
    })
  })
  const nothing = (): void => {}
  return {
    pid: undefined,
    frames: Readable.from([]),
    stdout: Readable.from([]),
    stderr: Readable.from([]),
    control: (async function* () {})(),
    ended,
    send: nothing,
    sendToScript: nothing,
    unsentBytes: 0,
    onTaken: nothing,
    kill: nothing,
    destroy: nothing,
    lastWords: () => '',
  }
}
