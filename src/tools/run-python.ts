import { z } from 'zod'
import {
  noteDisplays,
  type DisplayNote,
  FileNews,
  type FileNote,
  type LeftFile,
  notesOf,
  picturesOf,
  type ShownFile,
  fitFiles,
  type ShownValue,
} from './answer-files.ts'
import { type McpBlock, mcpBlockOf, type ModelOutput, modelOutputOf } from './answer-parts.ts'
import { type RanCell, formatCellValue, describeState } from './cell-answer.ts'
import { selectTold } from './told-warnings.ts'
import type { ToolSet } from './tool-set.ts'
import { type NamedPackage, packagesText, truncateAndCount } from '../support/index.ts'

/** Options of the tool for an agent. */
export interface RunPythonOptions {
  /** Default `run_python`. */
  readonly name?: string | undefined
  /** Instructions for the model, placed before the functions. */
  readonly instructions?: string | undefined
  /** Maximum characters of the functions' stubs in the description; further functions are listed by name. Default 8,000. */
  readonly maxStubChars?: number | undefined
  /** Maximum characters of a result, of stdout and of an error in the answer. Default 10,000 each. */
  readonly maxAnswerChars?: number | undefined
  /**
   * Maximum bytes of the files whose content goes to the model with an answer, at most 10 of them. Others are only named.
   * Default 1 MiB; 0 for none.
   */
  readonly maxAnswerFileBytes?: number | undefined
  /**
   * Called with the files of an answer and the pictures of its displays (`isDisplay`), if it has some, before the model gets it. What it
   * throws ends the call. In a workspace, the files are those that are new or changed since the last answer.
   */
  readonly onFiles?: ((files: readonly LeftFile[]) => void | Promise<void>) | undefined
}

/** The part of a run's result that this file needs. */
export interface RanScript extends RanCell {
  readonly status: string
  readonly success: boolean
  readonly hasResult: boolean
  readonly finalData: unknown
  readonly error: string | null
  /** Null if nothing failed, even if the script emitted no result. */
  readonly errorKind: string | null
  readonly traceback: string | null
  readonly stdout: string
  readonly stderr: string
  readonly logs: readonly { readonly level: string; readonly message: string }[]
  readonly intermediates: readonly { readonly label: string; readonly data: unknown }[]
  readonly warnings: readonly { readonly code: string; readonly message: string }[]
  readonly files: readonly LeftFile[]
  readonly displays: readonly ShownValue[]
  readonly violations: readonly {
    readonly code: string
    readonly line: number
    readonly message: string
    readonly hint: string
  }[]
}

/** The answer to the model, without empty parts. */
export interface RunPythonAnswer {
  readonly ok: boolean
  readonly status: string
  readonly result?: unknown
  /** In a session: the last expression as Python shows it, or its JSON. */
  readonly value?: string
  readonly intermediates?: readonly { readonly label: string; readonly data: unknown }[]
  readonly logs?: readonly string[]
  readonly stdout?: string
  readonly stderr?: string
  readonly error?: string
  /** The files that `collect` asked for; in a workspace those that are new or changed since the last answer. Their content is not here: see `onFiles`, `toModelOutput` and `mcp`. */
  readonly files?: readonly FileNote[]
  /** In a session: present if the variables are not as the script left them; `note` says what that means. */
  readonly state?: 'rolled-back' | 'lost'
  /** The values that the script showed, by `display` or as figures. Their pictures are not here: see `onFiles`, `toModelOutput` and `mcp`. */
  readonly displays?: readonly DisplayNote[]
  /** A remark on a run without an error, or on the state of the session. */
  readonly note?: string
  /** The mistakes to fix, one per line; the script did not run. */
  readonly mistakes?: readonly string[]
}

/** A tool that runs scripts, in the form of the AI SDK and, as `mcp`, of an MCP server. */
export interface RunPythonTool {
  readonly name: string
  readonly description: string
  readonly inputSchema: z.ZodType<{ script: string }>
  execute(input: { script: string }, context?: { abortSignal?: AbortSignal | undefined }): Promise<RunPythonAnswer>
  /** For the AI SDK: the answer, and the images and texts among its files. */
  toModelOutput(call: { readonly output: RunPythonAnswer }): ModelOutput
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
    ): Promise<{ content: McpBlock[]; isError: boolean }>
  }
}

const DEFAULT_NAME = 'run_python'
const STUB_CHARS = 8000
const ANSWER_CHARS = 10_000
const ANSWER_FILE_BYTES = 1024 * 1024

/**
 * Makes the tool.
 * @param run runs a script with these tools until the signal fires.
 */
export function runPythonTool(
  set: ToolSet | undefined,
  run: (script: string, signal: AbortSignal | undefined) => Promise<RanScript>,
  options: RunPythonOptions & Surroundings = {},
): RunPythonTool {
  const { name = DEFAULT_NAME, maxAnswerChars: maxChars = ANSWER_CHARS } = options
  const maxBytes = options.maxAnswerFileBytes ?? ANSWER_FILE_BYTES
  const description = describe(set, options)
  const inputSchema = z.object({ script: z.string().describe('Python source of the whole script') })
  // Content of files is kept apart from the answers: frameworks store answers as JSON. An answer that was read back from
  // such a store has no content any more.
  const shown = new WeakMap<RunPythonAnswer, readonly ShownFile[]>()
  const news = options.lasts === undefined || options.lasts === 'nothing' ? undefined : new FileNews()
  const answerTo = async (script: string, signal: AbortSignal | undefined): Promise<RunPythonAnswer> => {
    const ran = await run(script, signal)
    const files = news?.selectNew(ran.files) ?? ran.files
    const byDisplay = picturesOf(ran.displays)
    const pictures = byDisplay.filter((picture) => picture !== undefined)
    if (pictures.length + files.length > 0) await options.onFiles?.([...pictures, ...files])
    const notes = await notesOf(files)
    const limits = { maxBytes, maxChars }
    const shownPictures = fitFiles(pictures, await notesOf(pictures), limits)
    const displays = noteDisplays(ran.displays, byDisplay, shownPictures, limits)
    const answer = answerOf(ran, notes, displays, { max: maxChars, isCell: options.lasts === 'variables' })
    shown.set(answer, [...shownPictures, ...fitFiles(files, notes, limits, shownPictures)])
    news?.noteShown(ran.files)
    return answer
  }
  return {
    name,
    description,
    inputSchema,
    execute: ({ script }, context) => answerTo(script, context?.abortSignal),
    toModelOutput: ({ output }) => modelOutputOf(output, shown.get(output) ?? []),
    mcp: {
      name,
      config: { title: 'Run Python', description, inputSchema },
      async handler({ script }, extra) {
        const answer = await answerTo(script, extra?.signal ?? extra?.mcpReq?.signal)
        const blocks = (shown.get(answer) ?? []).map(mcpBlockOf)
        return { content: [{ type: 'text', text: JSON.stringify(answer) }, ...blocks], isError: !answer.ok }
      },
    },
  }
}

/** Facts for the description about the place where scripts run. */
interface Surroundings {
  readonly packages?: readonly NamedPackage[]
  readonly scriptPackages?: string
  /** The files that scripts find and leave, as sentences. */
  readonly files?: string
  /** The state that stays from script to script; variables stay with files. Default: nothing. */
  readonly lasts?: 'nothing' | 'files' | 'variables'
  /** With variables: whether a script that raises an exception has its changes undone. */
  readonly undoesErrors?: boolean
}

function describe(set: ToolSet | undefined, options: RunPythonOptions & Surroundings): string {
  const { maxStubChars = STUB_CHARS, packages, scriptPackages = '', lasts = 'nothing', undoesErrors = false } = options
  const parts = [
    lasts === 'variables' ? `${INTRODUCTIONS[lasts]}${undoesErrors ? UNDONE : KEPT}` : INTRODUCTIONS[lasts],
    [packagesText(packages), scriptPackages].filter((text) => text !== '').join(' '),
    options.files,
    options.instructions,
  ]
  if (set !== undefined && set.tools.size + set.pythonTools.size > 0) {
    parts.push(
      'The script can call these functions directly, without an import. Do as much as possible in one script.' +
        (set.tools.size > 0
          ? ' A failed call raises ToolError (e.code, str(e)). Fields of an object: r["name"] or r.name.'
          : ''),
      `\`\`\`python\n${set.stubs(maxStubChars)}\n\`\`\``,
    )
  }
  return parts.filter((part) => part !== undefined && part !== '').join('\n\n')
}

const RETURNS =
  'Runs a Python 3 script in a sandbox without a network. Returns the data that the script passes to ' +
  'emit_result(data), once, as JSON, the output of print() and emit_log(message), figures, and what display(value) shows. '
const INTRODUCTIONS = {
  nothing: `${RETURNS}Nothing of an earlier script remains.`,
  files: `${RETURNS}Files in the working directory stay from script to script; nothing else does.`,
  variables:
    'Runs a Python 3 script in a sandbox without a network, as a cell of a notebook: variables, functions, imports and files in the ' +
    'working directory stay from script to script. Returns the value of the last expression, the output of print(), figures, and what display(value) shows. ',
} as const
const KEPT =
  'After an exception, variables are as the script left them. A script that is ended (timeout, memory limit, crash) has its changes of ' +
  'variables undone if possible; the answer then says so.'
const UNDONE =
  'A script that raises an exception or is ended (timeout, memory limit, crash) has its changes of variables undone if possible; the ' +
  'answer then says so. Files stay as it wrote them.'

function answerOf(
  ran: RanScript,
  files: readonly FileNote[],
  displays: readonly DisplayNote[],
  { max, isCell }: { readonly max: number; readonly isCell: boolean },
): RunPythonAnswer {
  const value = formatCellValue(ran)
  const ok = ran.errorKind === null
  const { intermediates, logs, stdout, stderr, violations } = ran
  return {
    ok,
    status: ran.status,
    ...(ran.hasResult ? { result: boundedJson(ran.finalData, max) } : {}),
    ...(value === undefined ? {} : { value: truncateAndCount(value, max) }),
    ...(intermediates.length === 0 ? {} : { intermediates: boundedList(intermediates, max, leftOutIntermediates) }),
    ...(logs.length === 0
      ? {}
      : {
          logs: boundedList(
            logs.map(({ level, message }) => `${level}: ${message}`),
            max,
            leftOutNote,
          ),
        }),
    ...(stdout === '' ? {} : { stdout: truncateAndCount(stdout, max) }),
    ...(stderr === '' ? {} : { stderr: truncateAndCount(stderr, max) }),
    ...(violations.length > 0
      ? {
          mistakes: boundedList(
            violations.map((v) => `line ${v.line}: ${v.message} (${v.code}) ${v.hint}`.trim()),
            max,
            leftOutNote,
          ),
        }
      : ran.error === null
        ? {}
        : { error: truncateAndCount(ran.traceback === null ? ran.error : `${ran.error}\n${ran.traceback}`, max) }),
    ...(displays.length === 0 ? {} : { displays: boundedList(displays, max, leftOutDisplays) }),
    ...(files.length === 0 ? {} : { files: boundedList(files, max, leftOutFiles) }),
    ...(ran.state === undefined || ran.state === 'kept' ? {} : { state: ran.state }),
    ...noteOf(ran, { max, needsResult: ok && !isCell }),
  }
}

/** A note with facts that the rest of the answer does not show. */
function noteOf(
  ran: RanScript,
  { max, needsResult }: { readonly max: number; readonly needsResult: boolean },
): { readonly note?: string } {
  const { hasResult, warnings } = ran
  const notes = selectTold(warnings).map(({ message }) => message)
  const state = describeState(ran, max)
  if (state !== undefined) notes.unshift(state)
  if (needsResult && !hasResult) notes.unshift('the script ended without calling emit_result(data): there is no result')
  return notes.length === 0 ? {} : { note: truncateAndCount(notes.join('\n'), max) }
}

/** A value, or the beginning of its JSON if it is too large. */
function boundedJson(value: unknown, max: number): unknown {
  const text = JSON.stringify(value) ?? 'null'
  return text.length <= max ? value : truncateAndCount(text, max)
}

/** The first items that fit, followed by a note on the number of omitted items. */
function boundedList<T>(items: readonly T[], max: number, makeNote: (count: number) => T): T[] {
  const kept: T[] = []
  let length = 0
  for (const item of items) {
    length += JSON.stringify(item).length
    if (length > max) break
    kept.push(item)
  }
  const missing = items.length - kept.length
  return missing === 0 ? kept : [...kept, makeNote(missing)]
}

function leftOutNote(count: number): string {
  return `… (${count} more left out)`
}

function leftOutFiles(count: number): FileNote {
  return { path: leftOutNote(count), size: 0, type: '' }
}

function leftOutDisplays(count: number): DisplayNote {
  return { text: leftOutNote(count) }
}

function leftOutIntermediates(count: number): { label: string; data: unknown } {
  return { label: '…', data: leftOutNote(count) }
}
