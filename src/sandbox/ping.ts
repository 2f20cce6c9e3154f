import { randomUUID } from 'node:crypto'
import { decodeLine, encodeFrame, LineSplitter } from '../protocol/index.ts'
import type { Channel } from './contract.ts'

const MAX_ANSWER_BYTES = 64 * 1024

/** Resolves to true if an idle harness answers within `timeoutMs` and sends nothing else. Never rejects. */
export async function ping(channel: Channel, timeoutMs: number): Promise<boolean> {
  const nonce = randomUUID()
  const { promise: silence, resolve } = Promise.withResolvers<false>()
  const timer = setTimeout(() => resolve(false), timeoutMs)
  try {
    await Promise.race([channel.send(encodeFrame({ type: 'ping', nonce })), silence])
    return await Promise.race([awaitPong(channel, nonce), silence])
  } catch {
    return false
  } finally {
    clearTimeout(timer)
  }
}

async function awaitPong(channel: Channel, nonce: string): Promise<boolean> {
  const splitter = new LineSplitter(MAX_ANSWER_BYTES)
  for (;;) {
    const chunk = await channel.receive()
    if (chunk === null) return false
    for (const line of splitter.push(chunk)) {
      const decoded = decodeLine(line)
      if (decoded.kind === 'blank') continue
      const isPong = decoded.kind === 'frame' && decoded.frame.type === 'pong' && decoded.frame.nonce === nonce
      return isPong && splitter.pendingBytes === 0
    }
  }
}
