const MiB = 1024 * 1024

/**
 * What harness and host both hold to, so that neither sends what the other refuses. The harness has the same numbers in
 * its own sources; test/protocol/caps.test.ts compares them.
 */
export const CAPS: {
  /** Collected files of one run. */
  readonly files: number
  /** One collected file. */
  readonly fileBytes: number
  /** All collected files of one run. */
  readonly totalBytes: number
  /** Directories above a collected file. */
  readonly fileDepth: number
  /** Characters of the label of an intermediate and of the level of a log. */
  readonly label: number
  readonly level: number
  /** Characters of the shortest secret that is redacted. */
  readonly secret: number
  /** One tool call's arguments, and one answer, as JSON. */
  readonly toolBytes: number
  /** Python tools that one run brings along. */
  readonly toolSources: number
  /** The source of one of them, in UTF-8. */
  readonly toolSourceBytes: number
} = {
  files: 100,
  fileBytes: 4 * MiB,
  totalBytes: 64 * MiB,
  fileDepth: 64,
  label: 1024,
  level: 64,
  secret: 4,
  toolBytes: 16 * MiB,
  toolSources: 256,
  toolSourceBytes: MiB,
}

/** Bytes of file content in one frame, before base64, in either direction. */
export const FILE_CHUNK_BYTES: number = 192 * 1024

/** Deepest nesting of a value in either direction. */
export const MAX_DEPTH = 200

/** Frame types that `maxOutputBytes` does not count; each has a cap of its own. */
export const UNCOUNTED_FRAMES: ReadonlySet<string> = new Set([
  'file',
  'tool_call',
  'check_result',
  'script_done',
  'ready',
  'pong',
  'reset_done',
])
