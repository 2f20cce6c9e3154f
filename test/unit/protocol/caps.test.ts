import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { findPythons } from '../../../scripts/find-pythons.ts'
import { CAPS, PROTOCOL_VERSION, SCRIPT_ERROR_KINDS, truncateLikeHarness } from '../../../src/protocol/index.ts'
import { done, error, frame, play } from '../executor/wire.ts'

const TEXTS = [
  '',
  'short',
  '123456789',
  '1234567890',
  'é'.repeat(30),
  '😀'.repeat(9),
  '😀'.repeat(10),
  'a\n'.repeat(40),
  'ab😀'.repeat(9),
  '\ud83d😀\ude00'.repeat(9),
]

const LOOK = `
import json
from sandglass_harness import caps, text
from sandglass_harness.version import PROTOCOL_VERSION
print(json.dumps({
    'caps': {
        'executionId': caps.MAX_EXECUTION_ID, 'nonce': caps.MAX_NONCE,
        'depth': caps.MAX_DEPTH, 'label': caps.MAX_LABEL, 'level': caps.MAX_LEVEL,
        'errorMessage': caps.MAX_ERROR_MESSAGE, 'traceback': caps.MAX_TRACEBACK,
        'nullPaths': caps.MAX_NULL_PATHS, 'path': caps.MAX_PATH,
        'files': caps.MAX_FILES, 'fileBytes': caps.MAX_FILE_BYTES, 'totalBytes': caps.MAX_TOTAL_BYTES,
        'fileDepth': caps.MAX_FILE_DEPTH, 'entries': caps.MAX_ENTRIES, 'fileChunkBytes': caps.FILE_CHUNK_BYTES,
        'warnings': caps.MAX_WARNINGS, 'warning': caps.MAX_WARNING,
        'displays': caps.MAX_DISPLAYS, 'displayBytes': caps.MAX_DISPLAY_BYTES, 'displaysBytes': caps.MAX_DISPLAYS_BYTES,
        'displayTypes': caps.MAX_DISPLAY_TYPES, 'mimeType': caps.MAX_MIME_TYPE, 'leftOut': caps.MAX_LEFT_OUT,
        'imports': caps.MAX_IMPORTS, 'importName': caps.MAX_IMPORT,
        'callId': caps.MAX_CALL_ID, 'toolName': caps.MAX_TOOL_NAME,
        'argBytes': caps.MAX_ARG_BYTES, 'argParts': caps.MAX_ARG_PARTS, 'answerBytes': caps.MAX_ANSWER_BYTES, 'callHeadBytes': caps.CALL_HEAD_BYTES,
        'unreadAnswerBytes': caps.MAX_UNREAD_ANSWER_BYTES, 'checkBytes': caps.MAX_CHECK_BYTES,
        'toolSources': caps.MAX_TOOL_SOURCES, 'toolSourceBytes': caps.MAX_TOOL_SOURCE_BYTES,
        'textPerFrame': caps.MAX_TEXT_PER_FRAME, 'freeFrames': caps.FREE_FRAMES,
        'smallReadBytes': caps.SMALL_READ_BYTES, 'paceMs': caps.PACE_SEC * 1000,
        'junkLineBytes': caps.JUNK_LINE_BYTES, 'minSecretChars': caps.MIN_SECRET_CHARS, 'graceMs': caps.GRACE_SEC * 1000,
        'collectMs': caps.COLLECT_SEC * 1000, 'collectAfterDeadlineMs': caps.COLLECT_AFTER_DEADLINE_SEC * 1000,
        'requestLineBytes': caps.MAX_REQUEST_LINE_BYTES,
        'payloadBytes': caps.MAX_PAYLOAD_BYTES, 'inputWindowBytes': caps.INPUT_WINDOW_BYTES,
        'framesWindowBytes': caps.FRAMES_WINDOW_BYTES, 'waitingBytes': caps.MAX_WAITING_BYTES, 'reservedPids': caps.RESERVED_PIDS,
        'valueBytes': caps.MAX_VALUE_BYTES, 'listedNames': caps.MAX_LISTED_NAMES, 'missingItems': caps.MAX_MISSING_ITEMS, 'missingItemChars': caps.MAX_MISSING_ITEM_CHARS,
        'highWaterBytes': caps.HIGH_WATER_BYTES, 'lowWaterBytes': caps.LOW_WATER_BYTES,
    },
    'integer': caps.MAX_SAFE_INTEGER,
    'kinds': caps.SCRIPT_ERROR_KINDS,
    'protocol': PROTOCOL_VERSION,
    'cut': text.cut('sk-0123456789' * 100, 100),
    'cuts': [text.cut(each, 9) for each in ${JSON.stringify(TEXTS)}],
    'count': sum(name.isupper() for name in vars(caps)),
}))
`

interface Harness {
  readonly caps: typeof CAPS
  readonly cut: string
  readonly cuts: readonly string[]
}
let harness: Harness

beforeAll(() => {
  const { executable } = findPythons()[0] ?? { executable: 'python3' }
  const cwd = join(import.meta.dirname, '../../../harness')
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' }
  const run = spawnSync(executable, ['-c', LOOK], { cwd, env, encoding: 'utf8' })
  if (run.status !== 0) throw new Error(run.stderr)
  harness = JSON.parse(run.stdout) as Harness
})

test('harness and host have the same caps', () => {
  const { cut: _, cuts: __, ...rest } = harness
  expect(rest).toEqual({
    caps: CAPS,
    integer: Number.MAX_SAFE_INTEGER,
    kinds: SCRIPT_ERROR_KINDS,
    protocol: PROTOCOL_VERSION,
    // The table has each cap of the harness: those of CAPS, the integer and the kinds.
    count: Object.keys(CAPS).length + 2,
  })
})

test('both brokers cut a long text at the same places', () => {
  expect(TEXTS.map((text) => truncateLikeHarness(text, 9))).toEqual(harness.cuts)
})

test('the host accepts the maximum number of files and the longest path that the harness collects', async () => {
  const path = `${'漢'.repeat(85)}/`.repeat(harness.caps.fileDepth)
  const files = Array.from({ length: harness.caps.files }, (_, n) =>
    frame('file', { path: `${path}${n}`, size: 0, offset: 0, content_base64: '' }),
  )
  const { result } = await play([...files, done()], { request: { collect: ['**'] } })
  expect([result.status, result.files.length]).toEqual(['step-done', harness.caps.files])
})

test('the host accepts the longest line of output that the harness sends, however small the limit is', async () => {
  const longest = frame('stdout', { text: '\0'.repeat(harness.caps.textPerFrame) })
  const { result } = await play([longest, done()], { limits: { maxOutputBytes: harness.caps.textPerFrame } })
  expect([result.status, result.stdout.length]).toEqual(['step-done', harness.caps.textPerFrame])
})

test('the host knows the gap that the harness leaves where it cuts a text', async () => {
  const secrets = { KEY: 'sk-0123456789' }
  const { result } = await play([error(harness.cut), done()], { request: { secrets } })
  expect(harness.cut).toContain('sk-01234567\n')
  expect(result.error).toMatch(/^(\[redacted:KEY\])+\n\.\.\. 1200 characters left out \.\.\.\n(\[redacted:KEY\])+$/)
})
