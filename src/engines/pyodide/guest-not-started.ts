import type { ChildProcess } from 'node:child_process'
import { Readable } from 'node:stream'
import type { SandglassError } from '../../errors/index.ts'
import type { GuestProcess } from './guest-interface.ts'

/** Makes a guest without a process. Node reports the reason only after the call that should have started it. */
export function makeUnstartedGuest(child: ChildProcess, explain: (error: unknown) => SandglassError): GuestProcess {
  const ended = new Promise<Awaited<GuestProcess['ended']>>((resolve) => {
    child.once('error', (error) => {
      // If there are no descriptors left, Node has made no streams.
      for (const stream of (child.stdio as ChildProcess['stdio'] | undefined) ?? []) stream?.destroy()
      resolve({ code: null, signal: null, notStarted: explain(error) })
    })
  })
  const ignoreCall = (): void => {}
  return {
    pid: undefined,
    frames: Readable.from([]),
    stdout: Readable.from([]),
    stderr: Readable.from([]),
    control: (async function* () {})(),
    ended,
    send: ignoreCall,
    sendToScript: ignoreCall,
    unsentBytes: 0,
    awaitTaken: () => Promise.resolve(),
    interrupt: ignoreCall,
    kill: ignoreCall,
    destroy: ignoreCall,
    lastOutput: () => '',
  }
}
