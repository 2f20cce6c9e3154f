import { type HostActivityFrame, hostActivityFrames, type HostFrame } from '../../../protocol/index.ts'
import { formatValue } from '../../../support/index.ts'
import { checkRequest, isCell, isId, readObject } from '../request-shape.ts'

/** A frame that a broker of a workspace serves. */
export type WorkspaceRequest =
  | Extract<HostFrame, { type: 'execute' | 'tool_result' | 'tool_time' | 'cancel' | 'ping' }>
  | HostActivityFrame

const OF_RUNS: ReadonlySet<unknown> = new Set(['execute', 'tool_result', 'tool_time', 'cancel', 'ping'])

/** The frame on a line, or undefined for a blank line. @throws Error for one that a workspace does not serve. */
export function readWorkspaceRequest(line: Uint8Array): WorkspaceRequest | undefined {
  const value = readObject(line)
  if (value === undefined) return undefined
  const { type } = (value ?? {}) as { readonly type?: unknown }
  if (OF_RUNS.has(type)) return checkCell(checkRequest(value) as WorkspaceRequest)
  const schema =
    typeof type === 'string' && Object.hasOwn(hostActivityFrames, type)
      ? hostActivityFrames[type as HostActivityFrame['type']]
      : undefined
  const parsed = schema?.safeParse(value)
  if (parsed?.success === true) return parsed.data
  throw new Error(
    parsed === undefined
      ? `unsupported frame type ${formatValue(type)} in a workspace`
      : `${String(type)} has an invalid field`,
  )
}

/** @throws Error for a script that names a session, or a cell that names none. */
function checkCell(frame: WorkspaceRequest): WorkspaceRequest {
  if (frame.type !== 'execute' || (frame.session === undefined && frame.cell === undefined)) return frame
  if (isId(frame.session) && isCell(frame.cell)) return frame
  throw new Error('execute has an invalid session or cell')
}

/** Joins an `execute_in_parts` with the body that followed it. @throws Error */
export function joinRequest(
  head: Extract<HostActivityFrame, { type: 'execute_in_parts' }>,
  body: Uint8Array,
): Extract<HostFrame, { type: 'execute' }> {
  const fields = readObject(body)
  if (typeof fields !== 'object' || fields === null) throw new Error('the body of a request is not a JSON object')
  return checkCell(checkRequest({ ...fields, ...head, type: 'execute' }) as WorkspaceRequest) as Extract<
    HostFrame,
    { type: 'execute' }
  >
}
