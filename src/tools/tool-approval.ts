import { didYouMean, formatValue } from '../support/index.ts'
import { aiSdkOptions } from './accept.ts'
import { isPythonTool } from './python-tool.ts'
import { BY_DEFAULT, defineTool, type Tool, type ToolContext } from './tool.ts'
import { ToolCallError } from './tool-error.ts'
import { acceptedTools, mapTools, type ToolsInput } from './tool-set.ts'

/**
 * `toolApproval` of the AI SDK: a status for each tool by its name, or a function that returns one; or one function for all. A status
 * is `user-approval`, `approved`, `denied`, `not-applicable`, undefined, or an object with it as `type`.
 */
export type ToolApproval = Readonly<Record<string, unknown>> | ((call: never) => unknown)

/**
 * The tools, with what `toolApproval` says about their calls.
 * @throws TypeError for a name that no tool has, and for a value that is not a status.
 */
export function withToolApproval(given: ToolsInput, approval: ToolApproval): ToolsInput {
  const names = acceptedTools(given)
    .filter((tool) => !isPythonTool(tool))
    .map(({ name }) => name)
  if (typeof approval === 'function')
    return mapTools(given, (tool) =>
      isPythonTool(tool) ? tool : withDecider(tool, (call) => askForAll(approval, tool, call)),
    )
  if (typeof approval !== 'object' || approval === null)
    throw new TypeError(`toolApproval: ${formatValue(approval)} is neither an object nor a function`)
  for (const name of Object.keys(approval)) {
    if (!names.includes(name))
      throw new TypeError(`toolApproval: no tool ${formatValue(name)} on the host.${didYouMean(name, names)}`)
  }
  return mapTools(given, (tool) => {
    if (isPythonTool(tool) || !Object.hasOwn(approval, tool.name)) return tool
    const status = approval[tool.name]
    if (typeof status === 'function')
      return withDecider(tool, ({ input, ...call }) => Reflect.apply(status, undefined, [input, call]) as unknown)
    return statusOf(tool.name, status).type === 'not-applicable' ? tool : withDecider(tool, () => status)
  })
}

interface AskedCall {
  readonly input: unknown
  readonly toolCallId: string
  readonly messages: readonly unknown[]
  readonly toolContext: unknown
  readonly runtimeContext: unknown
}

function askForAll(approval: (call: never) => unknown, { name }: Tool, asked: AskedCall): unknown {
  const { input, toolCallId, messages, runtimeContext } = asked
  const toolCall = { type: 'tool-call', toolName: name, toolCallId, input }
  return Reflect.apply(approval, undefined, [
    { toolCall, tools: undefined, toolsContext: {}, messages, runtimeContext },
  ])
}

/** The tool with its approval decided by a status. If the status is `not-applicable`, its own `approve` decides. */
function withDecider(tool: Tool, ask: (call: AskedCall) => unknown): Tool {
  const { approve: own, name } = tool
  const approve = async (input: unknown, context: ToolContext): Promise<boolean> => {
    const { toolCallId, messages } = aiSdkOptions(context)
    const given: unknown = await ask({ input, toolCallId, messages, toolContext: {}, runtimeContext: {} })
    const { type, reason } = statusOf(name, given)
    if (type === 'denied') throw new ToolCallError('denied', reason ?? 'toolApproval denies it')
    if (type !== 'not-applicable') return type === 'user-approval'
    if (own === undefined) return BY_DEFAULT as never
    return typeof own === 'function' ? own(input, context) : own
  }
  return defineTool({ ...tool, approve })
}

const STATUSES = ['not-applicable', 'approved', 'denied', 'user-approval'] as const

/** @throws TypeError for a value that is not a status. */
function statusOf(
  name: string,
  given: unknown,
): { readonly type: (typeof STATUSES)[number]; readonly reason?: string } {
  if (given === undefined) return { type: 'not-applicable' }
  const status: { type?: unknown; reason?: unknown } =
    typeof given === 'object' && given !== null ? given : { type: given }
  const type = STATUSES.find((one) => one === status.type)
  if (type === undefined)
    throw new TypeError(
      `toolApproval of ${formatValue(name)}: ${formatValue(given)} is not a status; use one of ${STATUSES.join(', ')}`,
    )
  return typeof status.reason === 'string' ? { type, reason: status.reason } : { type }
}
