export { CAPS, type Caps, FILE_CHUNK_BYTES, MAX_DEPTH, SCRIPT_ERROR_KINDS, UNCOUNTED_FRAMES } from './caps.ts'
export { decodeLine, type DecodedLine, deeperThan, encodeFrame, encodeToolResult } from './decode.ts'
export {
  type HarnessFrame,
  harnessFrames,
  type NanAsNull,
  type ReadyFrame,
  type ToolCallFrame,
} from './harness-frames.ts'
export {
  type CheckedTool,
  type CheckFrame,
  type HostFrame,
  hostFrames,
  type PythonToolSource,
  type ToolFailure,
  type ToolParameter,
  type ToolSignature,
} from './host-frames.ts'
export { LineSplitter, LineTooLongError } from './lines.ts'
export { findHelper, SCRIPT_HELPERS } from './script-helpers.ts'
export { truncateLikeHarness } from './text.ts'
export { PROTOCOL_VERSION } from './version.ts'
