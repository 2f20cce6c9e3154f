import { expect, test } from 'vitest'
import { PackError, type PackPart, PackReader } from '../../../src/workspace/pack.ts'

const length = (number: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(number)
  return bytes
}
const header = (fields: object): Buffer => {
  const json = Buffer.from(JSON.stringify(fields))
  return Buffer.concat([length(json.length), json])
}

const pack = Buffer.concat([
  header({ path: 'a', mode: 0o644, size: 5, mtime_ms: 1 }),
  length(3),
  Buffer.from('one'),
  length(2),
  Buffer.from('!!'),
  length(0),
  header({ path: 'b', error: { code: 'not_found', message: 'nothing' } }),
  header({ path: 'c', mode: 0o600, size: 0 }),
  length(0xff_ff_ff_ff),
])

test('a pack is read the same wherever its bytes are cut', () => {
  for (let cut = 0; cut <= pack.length; cut += 1)
    expect(read([pack.subarray(0, cut), pack.subarray(cut)])).toEqual([
      'a',
      'one!!',
      'end',
      'b not_found',
      'c',
      'broken',
    ])
  expect(read([...pack].map((byte) => Buffer.from([byte])))).toEqual([
    'a',
    'one!!',
    'end',
    'b not_found',
    'c',
    'broken',
  ])
})

test('bytes that are not a pack are refused at once', () => {
  for (const bytes of [
    length(0),
    length(65_537),
    Buffer.concat([length(2), Buffer.from('{}')]),
    Buffer.concat([length(2), Buffer.from('xx')]),
    Buffer.concat([length(4), Buffer.from('null')]),
    Buffer.concat([header({ path: 'a' }), length(1024 * 1024 + 1)]),
  ])
    expect(() => read([bytes])).toThrow(PackError)
})

function read(chunks: readonly Buffer[]): string[] {
  const reader = new PackReader()
  const found: string[] = []
  let bytes = ''
  for (const part of chunks.flatMap((chunk): PackPart[] => [...reader.push(chunk)])) {
    if (part.kind === 'bytes') {
      bytes += String(part.bytes)
      continue
    }
    if (bytes !== '') found.push(bytes)
    bytes = ''
    if (part.kind === 'header') found.push(`${part.header.path} ${part.header.error?.code ?? ''}`.trim())
    else found.push(part.kind)
  }
  return found
}
