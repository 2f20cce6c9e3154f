import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { RunEvent } from '../../../src/executor/index.ts'
import { done, frame, ID, log, play, result } from './wire.ts'

type Frames = readonly Readonly<Record<string, unknown>>[]

const request = { collect: ['out/**'] }
const MiB = 1024 * 1024

function piece(
  path: string,
  content: string | Uint8Array,
  more: { size?: number; offset?: number } = {},
): Frames[number] {
  const bytes = Buffer.from(content)
  return frame('file', { path, size: bytes.length, offset: 0, content_base64: bytes.toString('base64'), ...more })
}

test('files come back complete, with their digest, and do not count as output', async () => {
  const { result: got, sandbox } = await play(
    [
      result(1),
      piece('out/a', 'abc', { size: 5 }),
      piece('out/a', 'de', { size: 5, offset: 3 }),
      piece('out/empty', ''),
      done(),
    ],
    { request },
  )
  expect(got.files).toEqual([
    {
      path: 'out/a',
      size: 5,
      sha256: createHash('sha256').update('abcde').digest('hex'),
      content: new Uint8Array(Buffer.from('abcde')),
    },
    { path: 'out/empty', size: 0, sha256: createHash('sha256').digest('hex'), content: new Uint8Array() },
  ])
  expect(got.outputBytes).toBe(JSON.stringify(result(1)).length + 1)
  expect(sandbox.destroyed).toBe(false)
})

test('each file is an event once it is complete, without the secrets in its path', async () => {
  const events: RunEvent[] = []
  await play(
    [
      piece('out/a', 'abc', { size: 5 }),
      piece('out/a', 'de', { size: 5, offset: 3 }),
      piece('out/tops3cret', ''),
      done(),
    ],
    {
      request: { ...request, secrets: { KEY: 'tops3cret' } },
      onEvent: (event) => event.type !== 'started' && events.push(event),
    },
  )
  expect(events).toEqual([
    { type: 'file', executionId: ID, path: 'out/a', size: 5 },
    { type: 'file', executionId: ID, path: 'out/[redacted:KEY]', size: 0 },
  ])
})

test('a path that is too long for one system call comes back, because a script can make it', async () => {
  const path = `out/${'漢/'.repeat(1500)}a`
  const { result: got } = await play([piece(path, 'x'), done()], { request })
  expect(got.files.map((file) => file.path)).toEqual([path])
})

test('the limits of the run are those of its files, and go to the sandbox', async () => {
  const files = Array.from({ length: 150 }, (_, index) => piece(`out/${index}`, 'x'))
  const { result: got, sandbox } = await play([...files, done()], {
    request: { ...request, collectLimits: { maxFiles: 150 } },
  })
  expect([got.files.length, sandbox.destroyed]).toEqual([150, false])
})

describe('a frame that no harness sends breaks the channel', () => {
  const many = Array.from({ length: 101 }, (_, index) => piece(`out/${index}`, ''))
  test.each<[string, Frames, string]>([
    ['an absolute path', [piece('/etc/passwd', 'x')], 'a file with an invalid path'],
    ['a path that leads out', [piece('out/../../x', 'x')], 'a file with an invalid path'],
    ['an empty path', [piece('', 'x')], 'a file with an invalid path'],
    ['a file twice', [piece('a', 'x'), piece('a', 'x')], 'a file twice'],
    ['a gap', [piece('a', 'x', { size: 9 }), piece('a', 'y', { size: 9, offset: 2 })], 'out of order'],
    ['a file within a file', [piece('a', 'x', { size: 9 }), piece('b', 'y')], 'out of order'],
    ['a size that changes', [piece('a', 'x', { size: 9 }), piece('a', 'y', { size: 8, offset: 1 })], 'out of order'],
    ['a beginning in the middle', [piece('a', 'x', { size: 9, offset: 1 })], 'out of order'],
    ['more than announced', [piece('a', 'xyz', { size: 2 })], 'longer than announced'],
    ['an empty piece', [piece('a', '', { size: 2 })], 'an empty piece'],
    ['a file of more than 4 MiB', [piece('a', 'x', { size: 4 * MiB + 1 })], 'a file of more than 4194304 bytes'],
    ['more than 100 files', many, 'more than 100 files'],
    ['content that is no base64', [{ ...piece('a', 'xyz'), content_base64: '@@@@' }], 'not base64'],
  ])('%s', async (_name, frames, problem) => {
    const { result: got, sandbox } = await play([log('kept'), ...frames, done()], { request })
    expect(got).toMatchObject({
      status: 'sandbox-lost',
      errorKind: 'infrastructure',
      ending: { cause: 'destroyed', by: 'host' },
    })
    expect(got.error).toContain(`the sandbox broke the protocol: it sent `)
    expect(got.error).toContain(problem)
    expect([got.logs.length, sandbox.destroyed]).toEqual([1, true])
  })

  test('more than the limits of the run', async () => {
    for (const [collectLimits, frames, problem] of [
      [{ maxFileBytes: 5 * MiB }, [piece('a', 'x', { size: 5 * MiB + 1 })], 'a file of more than 5242880 bytes'],
      [{ maxFiles: 1 }, [piece('a', ''), piece('b', '')], 'more than 1 files'],
      [{ maxTotalBytes: 3 }, [piece('a', 'xy'), piece('b', 'xy')], 'files of more than 3 bytes'],
    ] as const) {
      const { result: got, sandbox } = await play([...frames, done()], { request: { ...request, collectLimits } })
      expect(got.error).toContain(problem)
      expect([got.status, sandbox.destroyed]).toEqual(['sandbox-lost', true])
    }
  })

  test('a file that was not requested', async () => {
    const { result: got, sandbox } = await play([piece('a', 'x'), done()])
    expect([got.status, sandbox.destroyed]).toEqual(['sandbox-lost', true])
  })

  test('after a result it is a warning', async () => {
    const { result: got, sandbox } = await play([result(1), piece('../a', 'x')], { request })
    expect(got).toMatchObject({ status: 'completed', warnings: [{ code: 'channel_violation' }] })
    expect(sandbox.destroyed).toBe(true)
  })
})

test('a file whose end is missing is left out with a warning, and the sandbox does not serve again', async () => {
  const { result: got, sandbox } = await play([piece('out/a', 'x', { size: 2 }), done()], { request })
  expect(got).toMatchObject({ status: 'step-done', files: [], warnings: [{ code: 'file_incomplete' }] })
  expect(sandbox.destroyed).toBe(true)
})
