import { randomUUID } from 'node:crypto'
import { Redactor } from '../redaction/index.ts'
import { isPythonTool, mapTools, type Tool, ToolCallError, type ToolsInput } from '../tools/index.ts'

/** A part of a message: text, or other content of a tool's answer, such as an image. */
export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: string; readonly [key: string]: unknown }

const MARKER = /<<TOOL_RESPONSE:([^<>\s]{1,100})>>/g
/** The maximum number of answers, and of their total bytes as JSON. They stay in memory as long as their `ToolResponses`. */
const [MAX_KEPT, MAX_KEPT_BYTES] = [100, 16 * 1024 * 1024]
const NOTE =
  'It returns a marker. Print the marker: its place in your output gets the content, which the script cannot read.'

/**
 * Keeps the answers of tools without an output schema on the host, for one script. The script gets a marker in place of an answer and
 * prints it where the answer belongs. The message to the model then has the answer itself, with its images. Ids are random, so a
 * script can show only the answers to its own calls.
 */
export class ToolResponses {
  readonly #redactor: Redactor
  readonly #kept = new Map<string, readonly ContentPart[]>()
  #calls = 0
  #bytes = 0

  /** @param options `secrets`: the secrets of the script, redacted in the answers as in all output. */
  constructor({ secrets = {} }: { readonly secrets?: Readonly<Record<string, string>> } = {}) {
    this.#redactor = new Redactor(secrets)
  }

  /**
   * Returns the same tools, with the packages of a registry. Tools without an output schema answer with a marker, and their description says so.
   * @throws TypeError for a value that is not a tool.
   */
  wrap(tools: ToolsInput): ToolsInput {
    return mapTools(tools, (tool) => (isPythonTool(tool) || tool.output !== undefined ? tool : this.#markTool(tool)))
  }

  #markTool(tool: Tool): Tool {
    return Object.freeze({
      ...tool,
      description: `${tool.description}\n\n${NOTE}`.trim(),
      execute: async (input, context) => {
        this.#calls += 1
        if (this.#calls > MAX_KEPT)
          throw new ToolCallError('call_limit', `a script gets at most ${MAX_KEPT} answers without an output schema`)
        const parts = partsOf(await tool.execute(input, context))
        this.#bytes += Buffer.byteLength(JSON.stringify(parts))
        if (this.#bytes > MAX_KEPT_BYTES)
          throw new ToolCallError(
            'result_too_large',
            `answers without an output schema have at most ${MAX_KEPT_BYTES} bytes together`,
          )
        const id = randomUUID()
        this.#kept.set(id, this.#redactor.value(parts) as readonly ContentPart[])
        return `<<TOOL_RESPONSE:${id}>>`
      },
    } satisfies Tool)
  }

  /**
   * The content of the message for a model: the output of a script, with each answer once in place of its marker.
   * A marker with an unknown id becomes the text `((Tool response with ID … not found.))`.
   */
  expand(output: string): readonly ContentPart[] {
    const parts: ContentPart[] = []
    const shown = new Set<string>()
    const add = (part: ContentPart): void => {
      const last = parts.at(-1)
      if (isText(part) && part.text === '') return
      if (isText(part) && last !== undefined && isText(last))
        parts[parts.length - 1] = { type: 'text', text: last.text + part.text }
      else parts.push(part)
    }
    const { parts: texts, ids } = splitToolResponseMarkers(output)
    for (const [index, text] of texts.entries()) {
      const id = ids[index] ?? null
      const kept = id === null ? undefined : this.#kept.get(id)
      if (id === null) add({ type: 'text', text })
      else if (kept === undefined) add({ type: 'text', text: `((Tool response with ID ${id} not found.))` })
      else if (shown.has(id)) add({ type: 'text', text: `((Tool response with ID ${id} is above.))` })
      else for (const part of kept) add(part)
      if (id !== null) shown.add(id)
    }
    return parts
  }
}

/** Splits a text at its markers. For each piece, `ids` has the id of its marker, or null for text. */
export function splitToolResponseMarkers(text: string): {
  readonly parts: readonly string[]
  readonly ids: readonly (string | null)[]
} {
  const parts: string[] = []
  const ids: (string | null)[] = []
  const add = (part: string, id: string | null): void => {
    if (part === '') return
    parts.push(part)
    ids.push(id)
  }
  let end = 0
  for (const match of text.matchAll(MARKER)) {
    add(text.slice(end, match.index), null)
    add(match[0], match[1] ?? null)
    end = match.index + match[0].length
  }
  add(text.slice(end), null)
  return { parts, ids }
}

function partsOf(answer: unknown): readonly ContentPart[] {
  if (typeof answer === 'string') return [{ type: 'text', text: answer }]
  // The content of a message of LangChain, of MCP and of the AI SDK is a list of parts.
  const content = isObject(answer) && Array.isArray(answer['content']) ? (answer['content'] as unknown[]) : answer
  if (Array.isArray(content) && content.length > 0 && content.every(isPart)) return content.map(plainPart)
  return [{ type: 'text', text: JSON.stringify(answer) ?? 'null' }]
}

/** The fields by type of a message part, which has one of them. Other objects with a type are data. */
const PART_FIELDS: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  image: ['data', 'source', 'url', 'image', 'source_type'],
  image_url: ['image_url'],
  audio: ['data', 'source', 'url', 'source_type'],
  input_audio: ['input_audio'],
  video: ['data', 'source', 'url', 'source_type'],
  file: ['file', 'data', 'url', 'source', 'source_type', 'id'],
  document: ['source'],
  media: ['data'],
  resource: ['resource'],
}

/**
 * A copy of a part that is only JSON. Checkpointers convert data that looks like their own records, and refuse deeply nested data: such
 * a part becomes text.
 */
function plainPart(part: ContentPart): ContentPart {
  const json = JSON.stringify(part, (_, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value,
  )
  const copy: unknown = JSON.parse(json)
  return isPart(copy) && isPlain(copy) ? copy : { type: 'text', text: json }
}

/** The maximum depth of nested objects and lists in a part. */
const MAX_LEVELS = 5

function isPlain(value: unknown, levels: number = MAX_LEVELS): boolean {
  if (!isObject(value)) return true
  if (levels === 0) return false
  return Object.entries(value).every(
    ([key, item]) => key !== 'lc' && !key.startsWith('__') && isPlain(item, levels - 1),
  )
}

function isPart(value: unknown): value is ContentPart {
  if (!isObject(value) || typeof value['type'] !== 'string' || !Object.hasOwn(PART_FIELDS, value['type'])) return false
  return PART_FIELDS[value['type']]?.some((field) => value[field] !== undefined) === true
}

function isText(part: ContentPart): part is { readonly type: 'text'; readonly text: string } {
  return part.type === 'text' && 'text' in part && typeof part.text === 'string'
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
