import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { findPythons } from '../../scripts/find-pythons.ts'
import { CAPS, FILE_CHUNK_BYTES, MAX_DEPTH, PROTOCOL_VERSION } from '../../src/protocol/index.ts'
import { done, error, frame, play } from '../executor/wire.ts'

const LOOK = `
import json
from sandglass_harness import PROTOCOL_VERSION, collection, convert, emit, explain, host_tools, intake, run, wire
print(json.dumps({
    'caps': {
        'files': collection.MAX_FILES, 'fileBytes': collection.MAX_FILE_BYTES, 'totalBytes': collection.MAX_TOTAL_BYTES,
        'fileDepth': collection.MAX_WALK_DEPTH, 'label': emit.MAX_LABEL, 'level': emit.MAX_LEVEL,
        'secret': explain.MIN_SECRET, 'toolBytes': host_tools.MAX_CALL_BYTES,
        'toolSources': intake.MAX_SOURCES, 'toolSourceBytes': intake.MAX_SOURCE_BYTES,
    },
    'chunk': collection.CHUNK,
    'depths': [convert.MAX_DEPTH, wire.MAX_DEPTH],
    'integers': [convert.MAX_SAFE_INTEGER, wire.MAX_SAFE_INTEGER],
    'protocol': PROTOCOL_VERSION,
    'text': run.MAX_TEXT_PER_FRAME,
    'cut': explain.cut('sk-0123456789' * 100, 100),
}))
`

interface Harness {
  readonly caps: typeof CAPS
  readonly text: number
  readonly cut: string
}
let harness: Harness

beforeAll(() => {
  const { executable } = findPythons()[0] ?? { executable: 'python3' }
  const cwd = join(import.meta.dirname, '../../harness')
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' }
  const run = spawnSync(executable, ['-c', LOOK], { cwd, env, encoding: 'utf8' })
  if (run.status !== 0) throw new Error(run.stderr)
  harness = JSON.parse(run.stdout) as Harness
})

test('harness and host have the same caps', () => {
  const { text: _, cut: __, ...rest } = harness
  expect(rest).toEqual({
    caps: CAPS,
    chunk: FILE_CHUNK_BYTES,
    depths: [MAX_DEPTH, MAX_DEPTH],
    integers: [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
    protocol: PROTOCOL_VERSION,
  })
})

test('the host takes the most files, and the longest path, that the harness collects', async () => {
  const path = `${'漢'.repeat(85)}/`.repeat(harness.caps.fileDepth)
  const files = Array.from({ length: harness.caps.files }, (_, n) =>
    frame('file', { path: `${path}${n}`, size: 0, offset: 0, content_base64: '' }),
  )
  const { result } = await play([...files, done()], { request: { collect: ['**'] } })
  expect([result.status, result.files.length]).toEqual(['step-done', harness.caps.files])
})

test('the host takes the longest line of output that the harness sends, however small the limit is', async () => {
  const longest = frame('stdout', { text: '\0'.repeat(harness.text) })
  const { result } = await play([longest, done()], { limits: { maxOutputBytes: harness.text } })
  expect([result.status, result.stdout.length]).toEqual(['step-done', harness.text])
})

test('the host knows the gap that the harness leaves where it cuts a text', async () => {
  const secrets = { KEY: 'sk-0123456789' }
  const { result } = await play([error(harness.cut), done()], { request: { secrets } })
  expect(harness.cut).toContain('sk-01234567\n')
  expect(result.error).toMatch(/^(\[redacted:KEY\])+\n\.\.\. 1200 characters left out \.\.\.\n(\[redacted:KEY\])+$/)
})
