import { messageOf, SandglassError } from '../errors/index.ts'
import { decodeLine, LineSplitter, PROTOCOL_VERSION, type ReadyFrame } from '../protocol/index.ts'
import type { Channel } from './contract.ts'

const MAX_READY_BYTES = 1024 * 1024

/**
 * Waits for the harness's first frame. Engines call it at the end of `create`.
 * @param lastOutput the stderr of the sandbox, for the message of a failure.
 * @throws SandglassError `harness_start_failed` when the channel ends, is flooded or times out; `protocol_mismatch`.
 */
export async function awaitReady(
  channel: Channel,
  options: { timeoutMs: number; signal?: AbortSignal; lastOutput?: () => string },
): Promise<ReadyFrame> {
  const { promise: interrupted, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(new Error(`it sent no ready frame within ${options.timeoutMs} ms`)),
    options.timeoutMs,
  )
  const onAbort = (): void => reject(new SandglassError('aborted', 'aborted while a sandbox was starting'))
  options.signal?.addEventListener('abort', onAbort)
  if (options.signal?.aborted === true) onAbort()
  try {
    return await Promise.race([readReady(channel), interrupted])
  } catch (error) {
    if (error instanceof SandglassError) throw error
    const stderr = options.lastOutput?.().trim() ?? ''
    throw new SandglassError(
      'harness_start_failed',
      `the harness did not become ready: ${messageOf(error)}${stderr === '' ? '' : `; its stderr: ${stderr}`}`,
      { cause: error },
    )
  } finally {
    clearTimeout(timer)
    options.signal?.removeEventListener('abort', onAbort)
  }
}

async function readReady(channel: Channel): Promise<ReadyFrame> {
  const splitter = new LineSplitter(MAX_READY_BYTES)
  for (let read = 0; read <= MAX_READY_BYTES;) {
    const chunk = await channel.receive()
    if (chunk === null) throw new Error('it ended before it was ready')
    read += chunk.length
    for (const line of splitter.push(chunk)) {
      const decoded = decodeLine(line)
      if (decoded.kind !== 'frame' || decoded.frame.type !== 'ready') continue
      if (decoded.frame.protocol !== PROTOCOL_VERSION) {
        throw new SandglassError(
          'protocol_mismatch',
          `the harness speaks protocol ${decoded.frame.protocol}, this host ${PROTOCOL_VERSION}; use the harness of this package`,
        )
      }
      return decoded.frame
    }
  }
  throw new Error('it sent more than 1 MiB without a ready frame')
}
