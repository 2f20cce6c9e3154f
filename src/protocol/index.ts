export { CAPS, type Caps, FILE_CHUNK_BYTES, MAX_DEPTH, SCRIPT_ERROR_KINDS, UNCOUNTED_FRAMES } from './caps.ts'
export {
  decodeLine,
  MAX_PLAIN_PARTS,
  type DecodedLine,
  deeperThan,
  encodeExecute,
  encodeFrame,
  encodeToolResult,
  FilePutEncoder,
  type LineInParts,
  partsOfExecute,
} from './decode.ts'
export { decodeActivityFrame, encodeActivityFrame, headOfFrame } from './decode-activity.ts'
export { encodePayload, FrameSplitter, FramingError, MAX_FRAME_BYTES } from './frame-splitter.ts'
export {
  type ActivityDoneFrame,
  type ActivityFailure,
  type ActivityStream,
  entryOnWire,
  type EntryOnWire,
  type HarnessActivityFrame,
} from './harness-activity-frames.ts'
export {
  FRAMES_WINDOW_BYTES,
  type HostActivityFrame,
  hostActivityFrames,
  INPUT_WINDOW_BYTES,
  MAX_PAYLOAD_BYTES,
  type ProgramLimitsOnWire,
} from './host-activity-frames.ts'
export {
  type CheckpointOnWire,
  type DisplayFrame,
  type HarnessFrame,
  harnessFrames,
  MODULE_NAME,
  type NanAsNull,
  type ReadyFrame,
  type ToolCallFrame,
} from './harness-frames.ts'
export {
  type CellOnWire,
  type CheckedTool,
  type CheckFrame,
  type HostFrame,
  hostFrames,
  type PythonToolSource,
  type ToolFailure,
  type ToolParameter,
  type CollectLimitsOnWire,
  type ToolSignature,
} from './host-frames.ts'
export { LineSplitter, LineTooLongError } from './lines.ts'
export { isTextType } from './mime.ts'
export { findHelper, SCRIPT_HELPERS } from './script-helpers.ts'
export { truncateLikeHarness } from './text.ts'
export { PROTOCOL_VERSION } from './version.ts'
