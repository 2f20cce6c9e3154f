import { createHash } from 'node:crypto'
import type { CheckedTool, PythonToolSource, ToolSignature } from '../protocol/index.ts'
import { acceptTool, type KeyedTool, type NamedTool } from './accept.ts'
import { prepareTool, type PreparedTool } from './prepared-tool.ts'
import { pascal } from './python-classes.ts'
import { isPythonTool, type PythonTool, sourceOnWire } from './python-tool.ts'
import { stubsOf, type Stubbed } from './stub.ts'
import type { Tool } from './tool.ts'

/** Tools of one run, prepared. Made by {@link prepareTools}. */
export interface ToolSet {
  /** Tools of the host, by the name that the script calls. */
  readonly tools: ReadonlyMap<string, PreparedTool>
  /** Tools that are Python themselves, by the name that the script calls. */
  readonly pythonTools: ReadonlyMap<string, PythonTool>
  /** Of the tools of the host, in the order in which they were given. */
  readonly signatures: readonly ToolSignature[]
  /** Of the Python tools: what a run is given of them. */
  readonly sources: readonly PythonToolSource[]
  /** Secrets that the Python tools read, each once: a run must have them. */
  readonly requiredSecrets: readonly string[]
  /** What the checker is told of all of them; made when it is first asked for. */
  readonly checked: readonly CheckedTool[]
  /** Tools whose function has another name than they were given. */
  readonly renamed: readonly { readonly from: string; readonly to: string }[]
  /** Of all signatures, names, effects and sources, whatever their order: equal for sets that are equal to a script. */
  readonly digest: string
  /**
   * Python source that a model reads: each function with its docstring, and the classes that they name. In at most
   * `maxChars` characters, where all do not fit: a line for each, and in full as many as fit.
   */
  stubs(maxChars?: number): string
}

/** What has tools, such as a registry or a connection to an MCP server. */
export interface ToolSource {
  /** The same list as long as the tools are the same. */
  readonly tools: readonly NamedTool[]
  /** More of them, as a registry has them. */
  readonly pythonTools?: readonly PythonTool[]
}

/**
 * Tools as people have them: a list of tools (of {@link defineTool}, {@link definePythonTool}, LangChain or an MCP
 * server), a tool set of the AI SDK (name → tool), something that has tools, or what {@link prepareTools} made of one of
 * these.
 */
export type ToolsInput = readonly NamedTool[] | Readonly<Record<string, KeyedTool>> | ToolSource | ToolSet

/**
 * Prepares tools for runs. Made once for the same list or record, as long as it holds the same tools, so that calling
 * it for each run costs nothing.
 * @throws TypeError that names the tool: for a name that no function can have or that two have, for a schema that is
 * not sound, and for what is no tool.
 */
export function prepareTools(given: ToolsInput): ToolSet {
  if (typeof given !== 'object' || given === null) throw new TypeError('tools: expected a list of tools or a tool set')
  const known = prepared.get(given)
  if (known !== undefined && known.elements === undefined) return known.set
  if (isSource(given) && (given.pythonTools ?? []).length === 0) return prepareTools(given.tools)
  const elements = elementsOf(isSource(given) ? [...given.tools, ...(given.pythonTools ?? [])] : given)
  if (known?.elements !== undefined && sameElements(known.elements, elements)) return known.set
  const set = toolSet(elements.map(({ key, tool }) => acceptTool(tool, key)))
  prepared.set(given, { elements, set })
  prepared.set(set, { elements: undefined, set })
  return set
}

interface Element {
  readonly key: string | undefined
  readonly tool: unknown
}

/** Forgotten with what the tools were given in. */
const prepared = new WeakMap<object, { readonly elements: readonly Element[] | undefined; readonly set: ToolSet }>()

function isSource(given: object): given is ToolSource {
  return 'tools' in given && Array.isArray(given.tools)
}

function elementsOf(given: object): Element[] {
  if (Array.isArray(given)) return given.map((tool: unknown) => ({ key: undefined, tool }))
  return Object.entries(given).map(([key, tool]: [string, unknown]) => ({ key, tool }))
}

function sameElements(a: readonly Element[], b: readonly Element[]): boolean {
  return a.length === b.length && a.every(({ key, tool }, index) => b[index]?.key === key && b[index]?.tool === tool)
}

function toolSet(given: readonly (Tool | PythonTool)[]): ToolSet {
  const named = new Map<string, PreparedTool | PythonTool>()
  const classes = new Map<string, string>()
  for (const tool of given) {
    const made = isPythonTool(tool) ? tool : withOwnClasses(tool, classes)
    const other = named.get(made.name)
    if (other !== undefined) {
      const names = [other, made].map(shownName).join(' and ')
      throw new TypeError(`tools: ${names} would both be the function ${made.name} of the script`)
    }
    named.set(made.name, made)
    if (!isPythonTool(made)) for (const { name, source } of made.classes) classes.set(name, source)
  }
  const pythonTools = [...named.values()].filter(isPythonTool)
  const all = [...named.values()].filter((tool): tool is PreparedTool => !isPythonTool(tool))
  const stubbed = [...named.values()].map((tool): Stubbed => (isPythonTool(tool) ? { ...tool, classes: [] } : tool))
  const texts = new Map<number, string>()
  let checked: readonly CheckedTool[] | undefined
  return {
    tools: new Map(all.map((tool) => [tool.name, tool])),
    pythonTools: new Map(pythonTools.map((tool) => [tool.name, tool])),
    sources: pythonTools.map(sourceOnWire),
    requiredSecrets: [...new Set(pythonTools.flatMap(({ secrets }) => secrets))],
    get checked() {
      return (checked ??= [...named.values()].map((tool) => tool.checked))
    },
    signatures: all.map(({ signature }) => signature),
    renamed: all
      .filter(({ name, givenName }) => name !== givenName)
      .map(({ name, givenName }) => ({ from: givenName, to: name })),
    digest: digestOf(all, pythonTools),
    stubs(maxChars = Number.POSITIVE_INFINITY) {
      const text = texts.get(maxChars) ?? stubsOf(stubbed, maxChars)
      if (texts.size < MAX_KEPT_TEXTS) texts.set(maxChars, text)
      return text
    },
  }
}

function shownName(tool: PreparedTool | PythonTool): string {
  return isPythonTool(tool) ? `the Python tool ${JSON.stringify(tool.name)}` : JSON.stringify(tool.givenName)
}

/** Budgets whose text is kept. */
const MAX_KEPT_TEXTS = 4

/** A tool whose classes have names that no other class of the set has, unless the two are equal. */
function withOwnClasses(tool: Tool, taken: ReadonlyMap<string, string>): PreparedTool {
  const clashes = (made: PreparedTool): boolean =>
    made.classes.some(({ name, source }) => taken.has(name) && taken.get(name) !== source)
  let made = prepareTool(tool)
  for (let number = 1; clashes(made); number += 1) {
    made = prepareTool(tool, { classPrefix: `${pascal(made.name)}${number === 1 ? '' : number}` })
  }
  return made
}

function digestOf(tools: readonly PreparedTool[], pythonTools: readonly PythonTool[]): string {
  const lines = [
    ...tools.map(({ signature, effect }) => JSON.stringify([signature, effect])),
    ...pythonTools.map(({ name, stub, source }) => JSON.stringify([name, stub, source])),
  ]
  return createHash('sha256').update(lines.toSorted().join('\n')).digest('hex')
}
