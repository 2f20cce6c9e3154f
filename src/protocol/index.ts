export { CAPS } from './caps.ts'
export { decodeLine, type DecodedLine, deeperThan, encodeFrame } from './decode.ts'
export {
  FILE_CHUNK_BYTES,
  type HarnessFrame,
  harnessFrames,
  type HostFrame,
  hostFrames,
  MAX_DEPTH,
  PROTOCOL_VERSION,
  type ReadyFrame,
  UNCOUNTED_FRAMES,
} from './frames.ts'
export { LineSplitter, LineTooLongError } from './lines.ts'
