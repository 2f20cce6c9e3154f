import { type FileHandle, open } from 'node:fs/promises'
import { errnoOf, messageOf, SandglassError } from '../errors/index.ts'
import { inputLines } from './request-lines.ts'
import { UsageError } from './failure.ts'
import { jsonLine } from './json-line.ts'
import type { Output } from './output.ts'

/** The destination of the answers of a batch, which may hold answers already. */
export interface Answers extends AsyncDisposable {
  /** True if an earlier batch answered a request. A refusal is not an answer. */
  hasAnswer(id: string): boolean
  /** True if an earlier batch answered or refused an id. */
  hasAnswerOrRefusal(id: string): boolean
  /** True if the last answer of an earlier batch was this refusal. */
  hasRefusal(refusal: Refusal): boolean
  /** True if a cancelled run counts as an answer. In a file it does not: the batch can continue later. */
  readonly keepsCancelled: boolean
  write(answer: Record<string, unknown>): Promise<void>
}

/** The refusal of a request with a mistake in it. */
export interface Refusal {
  readonly id: string | null
  /** The number of its line; null if only the sandbox found the problem. */
  readonly line: number | null
  readonly error: string | null
}

/** Answers go to stdout. */
export function answersTo(stdout: Output): Answers {
  return {
    hasAnswer: () => false,
    hasAnswerOrRefusal: () => false,
    hasRefusal: () => false,
    keepsCancelled: true,
    write: (answer) => stdout.line(answer),
    [Symbol.asyncDispose]: async () => {},
  }
}

/**
 * Answers are appended to a file. A last line that was cut off by a kill is removed first.
 * @throws UsageError when the file holds anything but answers or cannot be written.
 */
export async function answersIn(path: string): Promise<Answers> {
  const file = await openFile(path)
  try {
    const known = (await file.stat()).isFile() ? await readKnownAnswers(file, path) : new KnownAnswers()
    return {
      hasAnswer: (id) => known.ids.has(id),
      hasAnswerOrRefusal: (id) => known.ids.has(id) || known.refused.has(id),
      hasRefusal: (refusal) => known.refusals.get(keyOf(refusal)) === refusal.error,
      keepsCancelled: false,
      write: (answer) => append(file, path, jsonLine(answer)),
      [Symbol.asyncDispose]: () => file.close(),
    }
  } catch (error) {
    await file.close()
    throw error
  }
}

class KnownAnswers {
  readonly ids = new Set<string>()
  /** Ids of requests that were refused. */
  readonly refused = new Set<string>()
  /** The refusal that was written last. */
  readonly refusals = new Map<string, string | null>()
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'a+')
  } catch (error) {
    throw new UsageError('invalid_request', `--out ${path}: ${messageOf(error)}`, { cause: error })
  }
}

async function readKnownAnswers(file: FileHandle, path: string): Promise<KnownAnswers> {
  const known = new KnownAnswers()
  const end = await endOfLastLine(file)
  const { size } = await file.stat()
  if (end > 0) {
    const stream = file.createReadStream({ start: 0, end: end - 1, autoClose: false })
    for await (const line of inputLines(stream as AsyncIterable<Uint8Array>, Number.MAX_SAFE_INTEGER)) {
      const answer = 'text' in line ? parseAnswer(line.text) : undefined
      if (answer === undefined) throw notAnswers(path, line.number)
      noteAnswer(known, answer)
    }
  }
  if (end < size) await fixTail(file, path, known, end, size)
  return known
}

/** Fixes the text after the last newline: a whole answer gets its newline, the head of one is cut off. */
async function fixTail(file: FileHandle, path: string, known: KnownAnswers, end: number, size: number): Promise<void> {
  const { buffer } = await file.read({ buffer: Buffer.alloc(size - end), position: end })
  const text = buffer.toString('utf8')
  const answer = parseAnswer(text)
  if (answer !== undefined) {
    noteAnswer(known, answer)
    return append(file, path, '\n')
  }
  const head = '{"v":1,"type":"result",'
  // A file with other content must not be truncated.
  if (!text.startsWith(head) && !head.startsWith(text)) throw notAnswers(path, undefined)
  await file.truncate(end)
}

function notAnswers(path: string, line: number | undefined): UsageError {
  const where = line === undefined ? 'its last line' : `line ${line}`
  return new UsageError('invalid_request', `--out ${path}: ${where} is not an answer of a batch; name another file`)
}

interface Answer extends Refusal {
  readonly isRefusal: boolean
}

function parseAnswer(text: string): Answer | undefined {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null) return undefined
    const { type, id, line, error, error_kind: kind } = value as Readonly<Record<string, unknown>>
    if (type !== 'result' || (typeof id !== 'string' && id !== null)) return undefined
    return {
      id,
      line: typeof line === 'number' ? line : null,
      error: typeof error === 'string' ? error : null,
      isRefusal: kind === 'invalid_request',
    }
  } catch {
    return undefined
  }
}

function noteAnswer(known: KnownAnswers, answer: Answer): void {
  const { id } = answer
  if (answer.isRefusal) known.refusals.set(keyOf(answer), answer.error)
  if (id !== null) (answer.isRefusal ? known.refused : known.ids).add(id)
}

function keyOf({ line, id }: Refusal): string {
  return JSON.stringify([line, id])
}

const WINDOW = 64 * 1024

/** The position after the last newline. */
async function endOfLastLine(file: FileHandle): Promise<number> {
  const { size } = await file.stat()
  for (let end = size; end > 0; end -= WINDOW) {
    const start = Math.max(0, end - WINDOW)
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(end - start), position: start })
    const at = buffer.subarray(0, bytesRead).lastIndexOf(0x0a)
    if (at !== -1) return start + at + 1
  }
  return 0
}

async function append(file: FileHandle, path: string, text: string): Promise<void> {
  try {
    await file.appendFile(text)
  } catch (error) {
    if (errnoOf(error) !== 'ENOSPC' && errnoOf(error) !== 'EDQUOT') throw error
    throw new SandglassError(
      'no_space',
      `no space left for ${path}: free some, then start the same batch again; it continues where it stopped`,
      { cause: error },
    )
  }
}
