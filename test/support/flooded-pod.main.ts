/**
 * A host whose sandbox on a cluster floods it, in a process of its own: what other tests left would hide its growth. Prints a line of JSON
 * when nobody has read for a while, and one at the end.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { kubernetesEngine, type KubernetesEngineOptions } from '../../src/engines/kubernetes/index.ts'
import { encodeFrame } from '../../src/protocol/index.ts'
import { resolveLimits, sandboxLimits } from '../../src/sandbox/index.ts'
import { fillYoungGeneration, heldMemory } from './memory.ts'

const MiB = 1024 * 1024
/** A full socket and a paused reader take no more than this of a flood; 20 MiB come in a second. */
const UNREAD_MS = 3000
const SLOW_MIB = 32
const TAIL_BYTES = 1024

/** What the host of a flood measured. */
export interface Flood {
  /** The growth of resident memory while nobody read; the young generation of V8 was filled before. */
  readonly unreadMiB: number
  /** That of resident memory up to the end, and of the bytes in use at the end. */
  readonly grownMiB: number
  readonly heldMiB: number
  readonly receivedMiB: number
}

const [options = '{}', mib = '1'] = process.argv.slice(2)
const engine = kubernetesEngine(JSON.parse(options) as KubernetesEngineOptions)
const sandbox = await engine.create({ limits: sandboxLimits(resolveLimits()) })
const { channel } = sandbox
const held = heldMemory()
fillYoungGeneration()
const resident = process.memoryUsage.rss()
let mostMiB = 0
const grownMiB = (): number => (mostMiB = Math.max(mostMiB, (process.memoryUsage.rss() - resident) / MiB))
const watching = setInterval(grownMiB, 20)
await channel.send(
  encodeFrame({
    type: 'execute',
    execution_id: 'flood',
    script: `import os\nb = b'x' * 65536\nfor _ in range(${Number(mib) * 16}): os.write(1, b)\n`,
    mode: 'interactive',
    timeout_sec: 240,
    max_output_bytes: 2 ** 31,
    inputs: {},
    secrets: {},
    required_secrets: [],
    collect: [],
    limits: {},
  }),
)
let received = (await channel.receive())?.length ?? 0
await sleep(UNREAD_MS)
const unreadMiB = grownMiB()
for (let tail = ''; !tail.includes('"script_done"');) {
  const piece = await channel.receive()
  if (piece === null) throw new Error(`the channel ended after ${received} bytes: ${tail}`)
  received += piece.length
  const { buffer, byteOffset, length } = piece
  tail += Buffer.from(buffer, byteOffset, length).toString('latin1', Math.max(0, length - TAIL_BYTES))
  tail = tail.slice(-TAIL_BYTES)
  channel.release?.()
  // First slower than it comes: the connection is paused for each piece.
  if (received < SLOW_MIB * MiB) await sleep(2)
}
const most = grownMiB()
clearInterval(watching)
const flood: Flood = {
  unreadMiB,
  grownMiB: most,
  heldMiB: (heldMemory() - held) / MiB,
  receivedMiB: received / MiB,
}
console.log(JSON.stringify(flood))
await sandbox.destroy()
await engine.close()
