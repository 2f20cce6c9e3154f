export { CAPS } from './caps.ts'
export { decodeLine, type DecodedLine, deeperThan, encodeFrame, encodeToolResult } from './decode.ts'
export {
  FILE_CHUNK_BYTES,
  type HarnessFrame,
  harnessFrames,
  type HostFrame,
  hostFrames,
  MAX_DEPTH,
  PROTOCOL_VERSION,
  type CheckedTool,
  type CheckFrame,
  type ReadyFrame,
  type ToolCallFrame,
  type ToolFailure,
  type ToolParameter,
  type ToolSignature,
  UNCOUNTED_FRAMES,
} from './frames.ts'
export { LineSplitter, LineTooLongError } from './lines.ts'
