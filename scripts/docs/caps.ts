import { CAPS, type Caps } from '../../src/protocol/index.ts'
import { code, markdownTable } from './table.ts'

const MEANINGS: Readonly<Record<keyof Caps, string>> = {
  executionId: 'characters of an `execution_id`',
  nonce: 'characters of a `nonce`',
  depth: 'levels of a value, in either direction',
  label: 'characters of the label of an `intermediate`',
  level: 'characters of the level of a `log`',
  errorMessage: 'characters of the message of an `error`, without the line that says what was cut',
  traceback: 'characters of its traceback, likewise',
  nullPaths: 'paths of `nan_as_null` in a `final_result`, an `intermediate` or a `value`',
  path: 'characters of one of them that the host keeps',
  files: 'collected files of one run',
  fileBytes: 'one collected file',
  totalBytes: 'all collected files of one run',
  fileDepth: 'directories above a collected file',
  entries: 'directory entries that the search for files looks at',
  fileChunkBytes: 'content in one `file` or `file_put`, before base64',
  displays: 'displays of one run; further ones are left out, with a warning',
  displayBytes:
    'the line of one `display`, before the broker adds `execution_id` and `after`. It is one line, like a tool call of the same size, and needs no pieces',
  displaysBytes: 'the lines of all displays of one run; further ones are left out, with a warning',
  displayTypes: 'MIME types of one display',
  mimeType: 'characters of the name of a MIME type',
  leftOut: 'MIME types in `left_out` of a display',
  warnings: 'warnings about files that were not collected',
  warning: 'characters of one of them',
  imports: 'modules that a `script_done` reports as `imported`',
  importName: 'characters of the name of one of them',
  callId: 'characters of the `id` of a `tool_call`',
  toolName: 'characters of the `name` of a `tool_call`',
  argBytes: 'arguments of one `tool_call`, as JSON',
  argParts: 'commas, colons and opening brackets in them, outside of strings',
  answerBytes: 'one `tool_result`, as JSON',
  callHeadBytes: 'a `tool_call` beside its arguments',
  unreadAnswerBytes: 'answers that a script has not read; a call beyond them gets the error `result_too_large`',
  checkBytes: 'one `check_result`, with an `error`',
  toolSources: 'Python tools of one run; more are answered by an `error` of kind `request`',
  toolSourceBytes: 'source of one of them, in UTF-8; a larger one is answered by an `error` of kind `request`',
  textPerFrame: 'characters of `text` in one `stdout` or `stderr`',
  freeFrames: 'small reads of output in a run that become a frame at once',
  smallReadBytes: 'a read of output below this size is small',
  paceMs: 'after each further small read, output gathers for this time',
  junkLineBytes: 'counted for a line that is not a frame, in addition to its length',
  minSecretChars: 'characters of the shortest secret that is redacted',
  graceMs: 'from the deadline, which a script can notice, to the kill, which it cannot',
  collectMs: 'search for files',
  collectAfterDeadlineMs: 'part of that search that may lie behind the deadline',
  requestLineBytes: 'line from host to harness; a longer one ends the harness',
  payloadBytes: 'raw bytes behind one line of a workspace',
  inputWindowBytes: 'bytes of input that an activity of a workspace has not taken',
  framesWindowBytes: 'bytes of lines of a run in a workspace that the host has not taken',
  waitingBytes: 'bytes that wait for the host, at which the broker of a workspace reads no more output',
  reservedPids: 'processes of a workspace that only the harness may start',
  valueBytes: 'the line with the value of a cell',
  listedNames: 'variables, or names that complete code, in the `result` of a `session_look`',
  missingItems: 'items of each of `lacks`, `missing` and `ended`',
  missingItemChars: 'characters of one of them, and of the name or type of a variable',
  highWaterBytes: 'waiting for the host: the harness stops reading from the script',
  lowWaterBytes: 'waiting for the host: the harness reads on',
}

/** The table of caps. */
export function caps(): string {
  const names = Object.keys(MEANINGS) as (keyof Caps)[]
  return markdownTable(
    ['cap', 'value', 'what it bounds'],
    names.map((name) => [code(name), valueOf(name), MEANINGS[name]]),
  )
}

function valueOf(name: keyof Caps): string {
  const value = CAPS[name]
  if (name.endsWith('Ms')) return value < 1000 ? `${value} ms` : `${value / 1000} s`
  if (!name.endsWith('Bytes')) return value.toLocaleString('en-US')
  if (value % (1 << 20) === 0) return `${value >> 20} MiB`
  return value % 1024 === 0 ? `${value >> 10} KiB` : `${value} bytes`
}
