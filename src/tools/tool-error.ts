/**
 * The codes that Sandglass gives a `ToolError`, with their meaning. A tool can use codes of its own
 * ({@link ToolCallError}).
 */
export const TOOL_ERROR_CODES: Readonly<Record<ToolErrorCode, string>> = {
  unknown_tool: 'The run has no tool of that name.',
  invalid_arguments: 'The arguments do not match the input schema, or cannot be sent; the message names the parameter.',
  invalid_result: 'The answer of the tool does not match its output schema, or cannot be sent as JSON.',
  result_too_large: 'The answer exceeds the maximum size of one answer.',
  call_limit: 'The tool was called more often than `maxCalls` allows in one run.',
  denied: 'The call needs the approval of a person, and did not get it; the message gives the reason.',
  timed_out: 'The tool did not answer within its `timeoutMs`.',
  cancelled: 'The run ended, or was cancelled, before the tool answered.',
  tool_failed: 'The tool threw an error; the message is that of the error.',
  wrong_process: "The script called a tool from a process that it had forked; only the script's own may.",
}

/** See {@link TOOL_ERROR_CODES}. */
export type ToolErrorCode =
  | 'unknown_tool'
  | 'invalid_arguments'
  | 'invalid_result'
  | 'result_too_large'
  | 'call_limit'
  | 'denied'
  | 'timed_out'
  | 'cancelled'
  | 'tool_failed'
  | 'wrong_process'

/**
 * The failure of a tool call; the script gets a `ToolError` with the same `code` and message. Throw one in `execute`
 * with a code of your own that the script can handle: `throw new ToolCallError('out_of_stock', 'none left of A-1')`.
 * Any other error of a tool has the code `tool_failed`.
 */
export class ToolCallError extends Error {
  override readonly name = 'ToolCallError'
  readonly code: string

  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}
