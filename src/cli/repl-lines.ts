import { messageOf } from '../errors/index.ts'
import type { CellOptions, CellResult } from '../index.ts'
import { didYouMean } from '../support/index.ts'
import { openInput } from './bounded-read.ts'
import type { Context } from './context.ts'
import { cellFiles } from './display-files.ts'
import { EXIT } from './exit-codes.ts'
import { errorLine, failureOf, UsageError } from './failure.ts'
import type { ReplSession } from './repl-session.ts'
import { inputLines } from './request-lines.ts'
import { notSaved, saveFiles, type Saving } from './save.ts'
import { displayLine } from './result-line.ts'

const MAX_LINE_BYTES = 16 * 1024 * 1024
const CELL_KEYS: readonly string[] = ['id', 'cell', 'timeout_s', 'on_error', 'branch']
const COMMAND_KEYS: readonly string[] = ['id', 'command', 'name', 'branch']
const COMMANDS = ['checkpoint', 'restore', 'branch', 'drop', 'variables'] as const
const ON_ERROR = ['keep', 'rollback'] as const

type Json = Readonly<Record<string, unknown>>

/** A line that asks for a cell or a command. */
type ReplRequest =
  | { readonly cell: string; readonly branch: string | undefined; readonly options: CellOptions }
  | {
      readonly command: (typeof COMMANDS)[number]
      readonly branch: string | undefined
      readonly name: string | undefined
    }

/** Answers requests in their order, one a line, each by one line (docs/cli.md). Resolves to the exit code. */
export async function serveLines(session: ReplSession, saving: Saving | undefined, context: Context): Promise<number> {
  try {
    await answerLines(session, saving, context)
  } catch (error) {
    context.signal.throwIfAborted() // it closed stdin
    throw error
  }
  context.signal.throwIfAborted()
  return EXIT.ok
}

async function answerLines(
  session: ReplSession,
  saving: Saving | undefined,
  { stdout, signal }: Context,
): Promise<void> {
  for await (const line of inputLines(openInput('-', 'stdin', signal), MAX_LINE_BYTES)) {
    let id: string | null = null
    try {
      signal.throwIfAborted()
      if ('problem' in line)
        throw wrong(
          line.problem === 'too-long' ? `the line is longer than ${MAX_LINE_BYTES} bytes` : 'the line is not UTF-8',
        )
      const asked = parse(line.text)
      id = asked.id
      const wish = parseRequest(asked.value)
      await stdout.line({ v: 1, ...(await answer(session, id, wish, { saving, signal })) })
    } catch (error) {
      signal.throwIfAborted()
      await stdout.line({ ...errorLine(failureOf(error)), id })
    }
  }
}

async function answer(
  session: ReplSession,
  id: string,
  wish: ReplRequest,
  { saving, signal }: { readonly saving: Saving | undefined; readonly signal: AbortSignal },
): Promise<Json> {
  if ('cell' in wish) {
    const result = await session.branch(wish.branch).run(wish.cell, { ...wish.options, signal })
    const files = cellFiles(wish.branch ?? 'main', result.number, result.displays)
    const problems = saving === undefined ? [] : saveFiles(saving, files)
    return cellLine(id, result, problems)
  }
  const { command, branch, name } = wish
  const about = { type: 'command', id, command }
  switch (command) {
    case 'checkpoint': {
      const { name: given, grade, lacks } = await session.checkpoint(branch, name)
      return { ...about, name: given, checkpoint: { grade, lacks } }
    }
    case 'restore': {
      const { ended, missing, checkpoint } = await session.restore(branch, requireName(name, command))
      return { ...about, name, ended, missing, checkpoint }
    }
    case 'branch':
      return { ...about, name: await session.fork(branch, name) }
    case 'drop':
      await session.drop(requireName(name, command))
      return { ...about, name }
    case 'variables':
      return { ...about, variables: await session.branch(branch).variables() }
    default:
      return command satisfies never
  }
}

/** The outcome of a cell as one line of JSON, with the reason for each picture that was not saved. */
export function cellLine(id: string, result: CellResult, problems: readonly string[]): Json {
  return {
    type: 'cell',
    id,
    number: result.number,
    status: result.status,
    error_kind: result.errorKind,
    state: result.state,
    value: result.value,
    has_result: result.hasResult,
    final_data: result.finalData,
    intermediates: result.intermediates,
    logs: result.logs,
    stdout: result.stdout,
    stderr: result.stderr,
    truncated: result.truncated,
    displays: result.displays.map(displayLine),
    error: result.error,
    traceback: result.traceback,
    warnings: [...result.warnings, ...notSaved(problems)],
    tool_calls: result.toolCalls,
    checkpoint: result.checkpoint,
    missing: result.missing,
    ended: result.ended,
    duration_ms: result.durationMs,
  }
}

function parse(text: string): { readonly id: string; readonly value: Json } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw wrong(`the line is not JSON: ${messageOf(error)}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong('the line is not a JSON object')
  const { id } = value as Json
  if (typeof id !== 'string') throw wrong('the line has no "id", a string')
  return { id, value: value as Json }
}

/** @throws UsageError */
function parseRequest(value: Json): ReplRequest {
  const all = [...CELL_KEYS, ...COMMAND_KEYS]
  const foreign = Object.keys(value).find((key) => !all.includes(key))
  if (foreign !== undefined) throw wrong(`no key ${JSON.stringify(foreign)}.${didYouMean(foreign, all)}`)
  const isCell = 'cell' in value
  if (isCell === 'command' in value) throw wrong('the line needs "cell" or "command", and not both')
  const keys = isCell ? CELL_KEYS : COMMAND_KEYS
  const other = Object.keys(value).find((key) => !keys.includes(key))
  if (other !== undefined) throw wrong(`${other}: a line with ${isCell ? '"cell"' : '"command"'} has no such key`)
  const branch = textOf(value, 'branch')
  if (!isCell) {
    const command = COMMANDS.find((one) => one === value['command'])
    if (command === undefined) throw wrong(`command: write ${COMMANDS.join(', ')}`)
    return { command, branch, name: textOf(value, 'name') }
  }
  const cell = textOf(value, 'cell')
  if (cell === undefined) throw wrong('cell: it is not a string')
  const { timeout_s: timeoutSec } = value
  if (timeoutSec !== undefined && typeof timeoutSec !== 'number') throw wrong('timeout_s: it is not a number')
  const onError = ON_ERROR.find((one) => one === value['on_error'])
  if (onError === undefined && 'on_error' in value) throw wrong('on_error: write keep or rollback')
  const options = {
    ...(timeoutSec === undefined ? {} : { timeoutSec }),
    ...(onError === undefined ? {} : { onError }),
  }
  return { cell, branch, options }
}

function textOf(value: Json, key: string): string | undefined {
  const text = value[key]
  if (text === '' && key !== 'cell') throw wrong(`${key}: it is empty`)
  if (text === undefined || text === null || typeof text === 'string') return text ?? undefined
  throw wrong(`${key}: it is not a string`)
}

function requireName(name: string | undefined, command: string): string {
  if (name === undefined) throw wrong(`${command} needs "name"`)
  return name
}

function wrong(message: string): UsageError {
  return new UsageError('invalid_request', message)
}
