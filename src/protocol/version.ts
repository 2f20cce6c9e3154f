/** Version of the wire protocol; a harness that speaks another one is refused. */
export const PROTOCOL_VERSION = 1
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
