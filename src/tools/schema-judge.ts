import { holdsBytes, memoryOf, sizeUpTo } from '../support/index.ts'
import { type Requester, askJudge, type Judgement, siblingModule } from '../judge/index.ts'
import { checkOrRefuse, compileSchema, type SchemaCheck } from './compile-schema.ts'
import type { SchemaQuestion } from './schema-answer.ts'
import { costOf } from './schema-cost.ts'
import type { JsonSchemaObject, SchemaIssue } from './standard-schema.ts'
import { partsOf, type ValuePart } from './value-parts.ts'

/** Larger values are checked in the judge's process, whatever the schema. */
const MAX_INLINE_CHARS = 64 * 1024
/** Characters times the cost of the schema; about 50 ms. */
const MAX_INLINE_WORK = 2 * 1024 * 1024
/** Larger schemas of tool servers are compiled in the judge's process. */
const MAX_FOREIGN_CHARS = 2048
/** A value that takes more memory is not checked: its text, and its copy in the judge's process, would add to it. */
const MAX_JUDGED_MEMORY = 32 * 1024 * 1024
/** Bytes of memory per character of a schema, including its compiled code. */
const BYTES_OF_SCHEMA_CHAR = 6
/** The time for one value. An ordinary value takes milliseconds. */
const DEADLINE_MS = 1000

const ANSWER = siblingModule(import.meta.url, 'schema-answer')

/**
 * Checks values from a script or a tool server against JSON Schema: small values at once if the schema bounds the
 * time, all others in the judge's process, within a deadline.
 */
export class SchemaJudge {
  readonly #schema: JsonSchemaObject
  readonly #isOwn: boolean
  readonly #inlineChars: number
  #check: SchemaCheck | undefined
  #text: string | undefined

  /**
   * @param isOwn false for the schema of a tool server: it is compiled at the first check, in the judge's process unless it is small.
   * @throws TypeError for invalid JSON Schema of the host's own.
   */
  constructor(schema: JsonSchemaObject, isOwn: boolean) {
    this.#schema = schema
    this.#isOwn = isOwn
    if (isOwn) this.#check = compileSchema(schema)
    const isInline = isOwn || sizeUpTo(schema, MAX_FOREIGN_CHARS) < MAX_FOREIGN_CHARS
    const cost = isInline ? costOf(schema) : undefined
    this.#inlineChars = cost === undefined ? 0 : Math.min(MAX_INLINE_CHARS, MAX_INLINE_WORK / cost)
  }

  /** The first problem of a value, or undefined. `requester` takes turns with others, see {@link askJudge}. */
  problemOf(value: unknown, requester?: Requester): SchemaIssue | undefined | Promise<SchemaIssue | undefined> {
    if (sizeUpTo(value, this.#inlineChars) < this.#inlineChars) {
      return (this.#check ??= checkOrRefuse(this.#schema))(value)
    }
    const text = (this.#text ??= JSON.stringify(this.#schema))
    return problemByJudge({ json: this.#schema, text }, value, requester, !this.#isOwn)
  }
}

/** JSON Schema, and the same as text. */
export interface SchemaText {
  readonly json: JsonSchemaObject
  readonly text: string
}

/**
 * Checks a value in the judge's process, a large one in parts. A value that JSON cannot represent is not checked here:
 * the code that sends values refuses it with the reason.
 * @param mustBeValid true if an invalid schema is a problem, false if it admits everything.
 */
export async function problemByJudge(
  { json, text }: SchemaText,
  value: unknown,
  requester?: Requester,
  mustBeValid = false,
): Promise<SchemaIssue | undefined> {
  const memory = memoryOf(value, MAX_JUDGED_MEMORY)
  if (memory === MAX_JUDGED_MEMORY) return issueIn({ kind: 'out-of-memory' })
  let deadlineMs = DEADLINE_MS
  for (const part of partsOf(json, text, value)) {
    const schema = part.schema === json ? text : JSON.stringify(part.schema)
    let startedAt = performance.now()
    const input = (): SchemaQuestion => {
      startedAt = performance.now()
      return { schema, value: jsonOf(part.value), mustBeValid }
    }
    const inputBytes = (part.value === value ? memory : memoryOf(part.value)) + BYTES_OF_SCHEMA_CHAR * schema.length
    const judgement = await askJudge({ module: ANSWER, input, inputBytes, deadlineMs, requester, kind: text })
    const issue = issueIn(judgement)
    if (issue !== undefined) return placeIssue(issue, part)
    // All parts after the first one share the deadline; the process may start during the first one.
    if (part.firstIndex !== undefined) deadlineMs = Math.max(1, deadlineMs - (performance.now() - startedAt))
  }
  return undefined
}

/** An issue of a part as one of its value. */
function placeIssue(issue: SchemaIssue, { path, firstIndex }: ValuePart): SchemaIssue {
  if (firstIndex === undefined || issue.isUnchecked === true) return issue
  const [index, ...rest] = issue.path ?? []
  if (typeof index === 'number') return { ...issue, path: [...path, index + firstIndex, ...rest] }
  // The place in the message is counted from the first item of the part.
  return { ...issue, message: `from item ${firstIndex} on, ${issue.message}`, path }
}

function issueIn(judgement: Judgement): SchemaIssue | undefined {
  switch (judgement.kind) {
    case 'answer':
      return judgement.text === '' ? undefined : (JSON.parse(judgement.text) as SchemaIssue)
    case 'timed-out':
      return makeUncheckedIssue(` within ${DEADLINE_MS} ms`)
    case 'busy':
      return makeUncheckedIssue(': too many other values are being checked; try again')
    case 'out-of-memory':
      return makeUncheckedIssue(': it takes too much memory')
    case 'failed':
      return makeUncheckedIssue(`: ${judgement.text}`)
  }
}

function makeUncheckedIssue(why: string): SchemaIssue {
  return { message: `cannot be checked against the schema${why}`, isUnchecked: true }
}

function jsonOf(value: unknown): string | undefined {
  try {
    // `undefined` becomes null, as it does where the value is sent.
    return JSON.stringify(emptyIfBytes(value ?? null), holdsBytes(value) ? withoutBytes : undefined)
  } catch {
    return undefined
  }
}

/**
 * Replaces bytes by an object without fields, for `JSON.stringify`, which would write a field for each. It replaces them in the
 * object that holds them: `JSON.stringify` calls the toJSON of a Buffer before it passes the Buffer here.
 */
function withoutBytes(_key: string, item: unknown): unknown {
  if (typeof item !== 'object' || item === null) return item
  if (Array.isArray(item)) return item.map(emptyIfBytes)
  return Object.fromEntries(Object.entries(item).map(([key, field]) => [key, emptyIfBytes(field)]))
}

function emptyIfBytes(value: unknown): unknown {
  return ArrayBuffer.isView(value) ? {} : value
}
