import { z } from 'zod'
import type { ToolSet } from './tool-set.ts'

/** How the one tool for an agent is described, and what it tells. */
export interface RunPythonOptions {
  /** Default `run_python`. */
  readonly name?: string | undefined
  /** Said to the model before the functions that a script can call. */
  readonly instructions?: string | undefined
  /** Characters of the functions' stubs in the description. What does not fit is listed by name. Default 8,000. */
  readonly maxStubChars?: number | undefined
  /** Characters of a result, of stdout and of an error that the model gets. Default 10,000 each. */
  readonly maxAnswerChars?: number | undefined
}

/** What became of a script, as this file needs it; the result of a run has it. */
export interface RanScript {
  readonly status: string
  readonly success: boolean
  readonly hasResult: boolean
  readonly finalData: unknown
  readonly error: string | null
  readonly traceback: string | null
  readonly stdout: string
  readonly stderr: string
  readonly logs: readonly { readonly level: string; readonly message: string }[]
  readonly intermediates: readonly { readonly label: string; readonly data: unknown }[]
  readonly violations: readonly {
    readonly code: string
    readonly line: number
    readonly message: string
    readonly hint: string
  }[]
}

/** What the model is told. Parts that are empty are left out. */
export interface RunPythonAnswer {
  readonly ok: boolean
  readonly status: string
  readonly result?: unknown
  readonly intermediates?: readonly { readonly label: string; readonly data: unknown }[]
  readonly logs?: readonly string[]
  readonly stdout?: string
  readonly stderr?: string
  readonly error?: string
  /** What to mend, a line each; nothing was run. */
  readonly mistakes?: readonly string[]
}

/** One tool that runs a script, in the shape of the AI SDK and, under `mcp`, of an MCP server. */
export interface RunPythonTool {
  readonly name: string
  readonly description: string
  readonly inputSchema: z.ZodType<{ script: string }>
  execute(input: { script: string }, context?: { abortSignal?: AbortSignal | undefined }): Promise<RunPythonAnswer>
  /** For `server.registerTool(mcp.name, mcp.config, mcp.handler)`. */
  readonly mcp: {
    readonly name: string
    readonly config: {
      readonly title: string
      readonly description: string
      readonly inputSchema: z.ZodType<{ script: string }>
    }
    handler(
      input: { script: string },
      extra?: { signal?: AbortSignal | undefined; mcpReq?: { signal?: AbortSignal | undefined } | undefined },
    ): Promise<{ content: { type: 'text'; text: string }[]; isError: boolean }>
  }
}

const DEFAULT_NAME = 'run_python'
const STUB_CHARS = 8000
const ANSWER_CHARS = 10_000

/**
 * Makes the tool.
 * @param run runs a script with these tools; it is given what ends it early.
 */
export function runPythonTool(
  set: ToolSet | undefined,
  run: (script: string, signal: AbortSignal | undefined) => Promise<RanScript>,
  options: RunPythonOptions = {},
): RunPythonTool {
  const { name = DEFAULT_NAME, maxStubChars = STUB_CHARS, maxAnswerChars = ANSWER_CHARS } = options
  const description = describe(set, maxStubChars, options.instructions)
  const inputSchema = z.object({ script: z.string().describe('Python source of the whole script') })
  const execute: RunPythonTool['execute'] = async ({ script }, context) =>
    answerOf(await run(script, context?.abortSignal), maxAnswerChars)
  return {
    name,
    description,
    inputSchema,
    execute,
    mcp: {
      name,
      config: { title: 'Run Python', description, inputSchema },
      async handler({ script }, extra) {
        const answer = answerOf(await run(script, extra?.signal ?? extra?.mcpReq?.signal), maxAnswerChars)
        return { content: [{ type: 'text', text: JSON.stringify(answer) }], isError: !answer.ok }
      },
    },
  }
}

function describe(set: ToolSet | undefined, maxStubChars: number, instructions: string | undefined): string {
  const parts = [
    'Runs a Python 3 script in a sandbox without network and returns what it hands to emit_result(data), once, as JSON. ' +
      'Each script starts anew: nothing of an earlier one is there. print() and emit_log(message) are returned too.',
    instructions,
  ]
  if (set !== undefined && set.tools.size + set.pythonTools.size > 0) {
    parts.push(
      'The script can call these functions directly, without import; do as much as you can in one script.' +
        (set.tools.size > 0
          ? ' A failed call raises ToolError (e.code, str(e)). Fields of an object: r["name"] or r.name.'
          : ''),
      `\`\`\`python\n${set.stubs(maxStubChars)}\n\`\`\``,
    )
  }
  return parts.filter((part) => part !== undefined && part !== '').join('\n\n')
}

function answerOf(ran: RanScript, most: number): RunPythonAnswer {
  const ok = ran.success || ran.status === 'step-done'
  const { intermediates, logs, stdout, stderr, violations } = ran
  return {
    ok,
    status: ran.status,
    ...(ran.hasResult ? { result: boundedJson(ran.finalData, most) } : {}),
    ...(intermediates.length === 0 ? {} : { intermediates: boundedList(intermediates, most, leftOutIntermediates) }),
    ...(logs.length === 0
      ? {}
      : {
          logs: boundedList(
            logs.map(({ level, message }) => `${level}: ${message}`),
            most,
            leftOut,
          ),
        }),
    ...(stdout === '' ? {} : { stdout: cut(stdout, most) }),
    ...(stderr === '' ? {} : { stderr: cut(stderr, most) }),
    ...(violations.length > 0
      ? {
          mistakes: boundedList(
            violations.map((v) => `line ${v.line}: ${v.message} (${v.code}) ${v.hint}`.trim()),
            most,
            leftOut,
          ),
        }
      : ran.error === null
        ? {}
        : { error: cut(ran.traceback === null ? ran.error : `${ran.error}\n${ran.traceback}`, most) }),
    ...(ok && !ran.hasResult
      ? { error: 'the script ended without calling emit_result(data): there is no result' }
      : {}),
  }
}

/** A value that is too large becomes the head of its JSON, with a word on what is missing. */
function boundedJson(value: unknown, most: number): unknown {
  const text = JSON.stringify(value) ?? 'null'
  return text.length <= most ? value : cut(text, most)
}

/** As many of the first as fit, and a word on how many are missing. */
function boundedList<T>(items: readonly T[], most: number, wordOn: (count: number) => T): T[] {
  const kept: T[] = []
  let length = 0
  for (const item of items) {
    length += JSON.stringify(item).length
    if (length > most) break
    kept.push(item)
  }
  const missing = items.length - kept.length
  return missing === 0 ? kept : [...kept, wordOn(missing)]
}

function leftOut(count: number): string {
  return `… (${count} more left out)`
}

function leftOutIntermediates(count: number): { label: string; data: unknown } {
  return { label: '…', data: leftOut(count) }
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}… (${text.length - most} characters left out)`
}
