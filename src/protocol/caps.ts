const KiB = 1024
const MiB = 1024 * KiB

/** Limits that the host and both brokers, of the harness and of the engine `pyodide`, enforce. */
export interface Caps {
  /** Characters of an execution id. */
  readonly executionId: number
  /** Characters of a nonce. */
  readonly nonce: number
  /** Levels of a value, in either direction. */
  readonly depth: number
  /** Characters of the label of an intermediate. */
  readonly label: number
  /** Characters of the level of a log. */
  readonly level: number
  /** Characters of the message of an error, without the note on what was cut. */
  readonly errorMessage: number
  /** Characters of the traceback of an error, without the note on what was cut. */
  readonly traceback: number
  /** Paths of NaNs that a frame names. */
  readonly nullPaths: number
  /** Characters of such a path. */
  readonly path: number
  /** Collected files of one run. */
  readonly files: number
  /** Bytes of one collected file. */
  readonly fileBytes: number
  /** Bytes of all collected files of one run. */
  readonly totalBytes: number
  /** Directories above a collected file. */
  readonly fileDepth: number
  /** Directory entries that the search for files reads. */
  readonly entries: number
  /** Bytes of file content in one frame, before base64, in either direction. */
  readonly fileChunkBytes: number
  /** Displays of one run. */
  readonly displays: number
  /** Bytes of the line of one display, without what a broker adds to it. */
  readonly displayBytes: number
  /** Bytes of the lines of all displays of one run. */
  readonly displaysBytes: number
  /** MIME types of one display. */
  readonly displayTypes: number
  /** Characters of the name of a MIME type. */
  readonly mimeType: number
  /** MIME types that a display names as left out. */
  readonly leftOut: number
  /** Warnings about files that were not collected. */
  readonly warnings: number
  /** Characters of one of them. */
  readonly warning: number
  /** Modules that a run reports as loaded. */
  readonly imports: number
  /** Characters of the name of one. */
  readonly importName: number
  /** Characters of the id of a tool call. */
  readonly callId: number
  /** Characters of the name of a called tool. */
  readonly toolName: number
  /** Bytes of one tool call's arguments, as JSON. */
  readonly argBytes: number
  /** Commas, colons and opening brackets in the arguments: a value takes far more memory of the host than its bytes. */
  readonly argParts: number
  /** Bytes of one answer to a tool call, as JSON. */
  readonly answerBytes: number
  /** Bytes of a tool call's line without its arguments. */
  readonly callHeadBytes: number
  /** Bytes of answers that a script has not read. */
  readonly unreadAnswerBytes: number
  /** Bytes of one answer to a check, errors included. */
  readonly checkBytes: number
  /** Python tools that one run brings along. */
  readonly toolSources: number
  /** Bytes of the source of one of them, in UTF-8. */
  readonly toolSourceBytes: number
  /** Characters of output in one frame. */
  readonly textPerFrame: number
  /** Small reads of output that become a frame at once. */
  readonly freeFrames: number
  /** Bytes below which a read of output is small. */
  readonly smallReadBytes: number
  /** Milliseconds for which output is gathered after each small read beyond them. */
  readonly paceMs: number
  /** Bytes counted for a line of a script that is not a frame, in addition to its length. */
  readonly junkLineBytes: number
  /** Characters of the shortest secret that is redacted. */
  readonly minSecretChars: number
  /** Milliseconds from the deadline, which a script can notice, to the kill, which it cannot. */
  readonly graceMs: number
  /** Milliseconds for the search for files. */
  readonly collectMs: number
  /** The part of the search, in milliseconds, that may be after the deadline. */
  readonly collectAfterDeadlineMs: number
  /** Bytes of a line from the host. */
  readonly requestLineBytes: number
  /** Raw bytes after one line, in a workspace. */
  readonly payloadBytes: number
  /** Bytes of input that an activity has not taken. */
  readonly inputWindowBytes: number
  /** Bytes of lines of a run in a workspace that the host has not taken. */
  readonly framesWindowBytes: number
  /** Bytes waiting for the host at which the broker of a workspace stops reading output. */
  readonly waitingBytes: number
  /** Processes of a workspace that only the harness may start. */
  readonly reservedPids: number
  /** Bytes of the line with the value of a cell. */
  readonly valueBytes: number
  /** Variables of a session, or names that complete code, in an answer. */
  readonly listedNames: number
  /** Entries of a list: of items that a checkpoint or a copy lacks, or of processes that a rollback ended. */
  readonly missingItems: number
  /** Characters of the name of one of them, and of the name or type of a variable. */
  readonly missingItemChars: number
  /** Bytes waiting for the host at which a broker stops reading from a script. */
  readonly highWaterBytes: number
  /** Bytes waiting for the host at which the broker continues to read. */
  readonly lowWaterBytes: number
}

/** The harness has the same table in `caps.py`; a test compares the two. */
export const CAPS: Caps = {
  executionId: 256,
  nonce: 64,
  depth: 200,
  label: 1024,
  level: 64,
  errorMessage: 16 * KiB,
  traceback: 64 * KiB,
  nullPaths: 5,
  path: 400,
  files: 100,
  fileBytes: 4 * MiB,
  totalBytes: 64 * MiB,
  fileDepth: 64,
  entries: 200_000,
  fileChunkBytes: 192 * KiB,
  displays: 100,
  displayBytes: 4 * MiB,
  displaysBytes: 16 * MiB,
  displayTypes: 16,
  mimeType: 100,
  leftOut: 16,
  warnings: 20,
  warning: 500,
  imports: 32,
  importName: 200,
  callId: 64,
  toolName: 256,
  argBytes: 4 * MiB,
  argParts: 128 * KiB,
  answerBytes: 16 * MiB,
  callHeadBytes: 4 * KiB,
  unreadAnswerBytes: 64 * MiB,
  checkBytes: 4 * MiB,
  toolSources: 256,
  toolSourceBytes: MiB,
  textPerFrame: 64 * KiB,
  freeFrames: 1000,
  smallReadBytes: 4 * KiB,
  paceMs: 1,
  junkLineBytes: 100,
  minSecretChars: 4,
  graceMs: 300,
  collectMs: 5000,
  collectAfterDeadlineMs: 300,
  requestLineBytes: 80 * MiB,
  payloadBytes: 64 * KiB,
  inputWindowBytes: 256 * KiB,
  framesWindowBytes: MiB,
  waitingBytes: 64 * KiB,
  reservedPids: 16,
  valueBytes: MiB,
  listedNames: 400,
  missingItems: 50,
  missingItemChars: 200,
  highWaterBytes: MiB,
  lowWaterBytes: 256 * KiB,
}

/** Bytes of file content in one frame, before base64, in either direction. */
export const FILE_CHUNK_BYTES: number = CAPS.fileChunkBytes

/** Deepest nesting of a value in either direction. */
export const MAX_DEPTH: number = CAPS.depth

/** Kinds of `error` that a script's process may claim; any other becomes `exception`. */
export const SCRIPT_ERROR_KINDS: readonly string[] = [
  'exception',
  'exit',
  'syntax',
  'setup',
  'memory',
  'timeout',
  'interrupted',
]

/** Frame types that do not count towards `maxOutputBytes`; each has its own cap. */
export const UNCOUNTED_FRAMES: ReadonlySet<string> = new Set([
  'file',
  'display',
  'tool_call',
  'check_result',
  'script_done',
  'ready',
  'pong',
  'reset_done',
])
