import { randomUUID } from 'node:crypto'
import { decodeLine, encodeFrame, LineSplitter } from '../src/protocol/index.ts'
import type { Sandbox } from './subject.ts'

/** The round-trip time of a ping to a sandbox's broker, in milliseconds. */
export async function channelEcho(sandbox: Sandbox): Promise<number> {
  const nonce = randomUUID()
  const splitter = new LineSplitter(65_536)
  const start = performance.now()
  await sandbox.channel.send(encodeFrame({ type: 'ping', nonce }))
  for (;;) {
    const chunk = await sandbox.channel.receive()
    if (chunk === null) throw new Error('the channel ended')
    for (const line of splitter.push(chunk)) if (decodeLine(line).kind === 'frame') return performance.now() - start
  }
}
