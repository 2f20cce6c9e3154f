import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { type Attached, Opener, SEAL_KEY_BYTES, unseal } from '../../../src/sandbox/seal.ts'

const HARNESS = fileURLToPath(new URL('../../../harness', import.meta.url))
const key = randomBytes(SEAL_KEY_BYTES)

/** Lines that the harness itself seals. */
function seal(lines: readonly string[], by: Uint8Array = key): Buffer {
  const program = `
import json, os, sys
from sandglass_harness.broker.seal import SealedOutbox
outbox = SealedOutbox(1, bytes.fromhex(sys.argv[1]))
for line in json.load(sys.stdin): outbox.put(line.encode())
outbox.flush()
`
  return execFileSync('python3', ['-B', '-c', program, Buffer.from(by).toString('hex')], {
    env: { ...process.env, PYTHONPATH: HARNESS },
    input: JSON.stringify(lines),
    maxBuffer: 1 << 26,
  })
}

/** What the harness opens of sealed bytes. */
function open(bytes: Uint8Array): string {
  const program = `
import sys
from sandglass_harness.broker.seal import Opener
sys.stdout.buffer.write(Opener(bytes.fromhex(sys.argv[1])).open(sys.stdin.buffer.read()))
`
  return execFileSync('python3', ['-B', '-c', program, Buffer.from(key).toString('hex')], {
    env: { ...process.env, PYTHONPATH: HARNESS },
    input: bytes,
    encoding: 'utf8',
    stdio: 'pipe',
  })
}

function attach(chunks: readonly Uint8Array[]): Attached & { closed: boolean } {
  const left = chunks.map((chunk) => Uint8Array.from(chunk))
  let last: Uint8Array | null = null
  const it = {
    closed: false,
    channel: {
      receive: () => Promise.resolve(it.closed ? null : (last = left.shift() ?? null)),
      // Nothing may be read of what was given back.
      release: () => void last?.fill(0),
      send: () => Promise.resolve(),
      close: () => {
        it.closed = true
      },
    },
    lastOutput: () => 'words',
    ended: Promise.resolve(),
  }
  return it
}

async function readAll({ channel }: Attached): Promise<string> {
  const pieces: Uint8Array[] = []
  for (let piece = await channel.receive(); piece !== null; piece = await channel.receive()) pieces.push(piece)
  return Buffer.concat(pieces).toString('utf8')
}

describe('a sealed channel', () => {
  const lines = ['{"a":1}\n', `${'ü'.repeat(100_000)}\n`, '', 'x\n']

  test.each([1, 7, 20, 4096, 1 << 20])("delivers the harness's data, in pieces of %i bytes", async (size) => {
    const bytes = seal(size < 20 ? [lines[0] ?? '', 'x\n'] : lines)
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
      bytes.subarray(n * size, (n + 1) * size),
    )
    const inner = attach(chunks)
    expect(await readAll(unseal(inner, key))).toBe(size < 20 ? '{"a":1}\nx\n' : lines.join(''))
    expect(inner.closed).toBe(false)
  })

  test('holds no more than one unfinished piece', () => {
    const opener = new Opener(key)
    expect([...opener.push(Buffer.from([0, 1, 0]))]).toEqual([])
    expect(() => [...opener.push(Buffer.concat([Buffer.from([1]), Buffer.alloc(16)]))]).toThrow('longer')
  })

  test.each([
    ['a plain line', () => Buffer.from('{"type":"script_done","execution_id":"run-1","reusable":true}\n')],
    ['data sealed with another key', () => seal(['{"b":2}\n'], randomBytes(SEAL_KEY_BYTES))],
    ['repeated data', () => seal(['{"a":1}\n'])],
    ['a changed byte', () => Buffer.concat([seal(['x\n', 'y\n']).subarray(22, -2), Buffer.from('z\n')])],
  ])('ends at %s, delivers only the data before it, and reports the reason', async (_, forge) => {
    const inner = attach([Buffer.concat([seal(['{"a":1}\n']), forge(), seal(['{"c":3}\n'])])])
    const outer = unseal(inner, key)
    expect(outer.lastOutput()).toBe('words')
    expect(await readAll(outer)).toBe('{"a":1}\n')
    expect(inner.closed).toBe(true)
    expect(outer.lastOutput()).toBe('something in the sandbox wrote to the channel beside the harness')
  })

  test('seals what is sent so that the harness can open it, and so that none of it is missing', async () => {
    const sent: Uint8Array[] = []
    const inner = attach([])
    inner.channel.send = (bytes: Uint8Array) => Promise.resolve(void sent.push(bytes))
    const { channel } = unseal(inner, key, true)
    for (const line of lines) await channel.send(Buffer.from(line))
    expect(open(Buffer.concat(sent))).toBe(lines.join(''))
    expect(() => open(Buffer.concat(sent.slice(1)))).toThrow('a piece does not have a valid tag of the host')
    await unseal(inner, key).channel.send(Buffer.from('as it is'))
    expect(String(sent.at(-1))).toBe('as it is')
  })
})
