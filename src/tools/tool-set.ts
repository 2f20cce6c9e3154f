import { createHash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { CheckedTool, PythonToolSource, ToolSignature } from '../protocol/index.ts'
import { acceptTool, type KeyedTool, type NamedTool } from './accept.ts'
import { prepareTool, type PreparedTool } from './prepared-tool.ts'
import { toPascalCase } from './python-classes.ts'
import { isPythonTool, type PythonTool, toWireSource } from './python-tool.ts'
import { stubsOf, type Stubbed } from './stub.ts'
import type { Tool } from './tool.ts'

/** Tools of one run, prepared. Made by {@link prepareTools}. */
export interface ToolSet {
  /** Host tools, by their Python names. */
  readonly tools: ReadonlyMap<string, PreparedTool>
  /** Python tools, by name. */
  readonly pythonTools: ReadonlyMap<string, PythonTool>
  /** The signatures of the host tools, in the given order. */
  readonly signatures: readonly ToolSignature[]
  /** The sources of the Python tools for a run. */
  readonly sources: readonly PythonToolSource[]
  /** Secrets of the Python tools, without duplicates: a run must have them. */
  readonly requiredSecrets: readonly string[]
  /** All tools for the checker; made on first use. */
  readonly checked: readonly CheckedTool[]
  /** Tools whose Python name differs from their own. */
  readonly renamed: readonly { readonly from: string; readonly to: string }[]
  /** A digest of all signatures, names, effects and sources, in any order: equal for sets that a script cannot distinguish. */
  readonly digest: string
  /**
   * Python source for a model: each function with its docstring, and the classes that they name. In at most
   * `maxChars` characters: if the full text does not fit, a line for each and the full text of as many as fit.
   */
  stubs(maxChars?: number): string
}

/** An object with tools, such as a registry or a connection to an MCP server. */
export interface ToolSource {
  /** The tools. The list is the same object until they change. */
  readonly tools: readonly NamedTool[]
  /** Python tools, as in a registry. */
  readonly pythonTools?: readonly PythonTool[]
  /** The packages of all tools, as in a registry. Default: those of the Python tools. */
  readonly dependencies?: readonly string[]
}

/**
 * All accepted forms of tools: a list (of {@link defineTool}, {@link definePythonTool}, LangChain or an MCP
 * server), a tool set of the AI SDK (name → tool), an object with tools, or the result of {@link prepareTools} for one of
 * these.
 */
export type ToolsInput = readonly NamedTool[] | Readonly<Record<string, KeyedTool>> | ToolSource | ToolSet

/**
 * Prepares tools for runs. The result is cached for the same list or record while it holds the same tools, so that a call for each
 * run costs nothing.
 * @throws TypeError, naming the tool, for a name that no function can have or that two tools have, for a schema that is
 * invalid, and for a value that is not a tool.
 */
export function prepareTools(given: ToolsInput): ToolSet {
  if (typeof given !== 'object' || given === null) throw new TypeError('tools: expected a list of tools or a tool set')
  const known = prepared.get(given)
  if (known !== undefined && known.elements === undefined) return known.set
  if (isSource(given) && (given.pythonTools ?? []).length === 0) return prepareTools(given.tools)
  const elements = allElements(given)
  if (known?.elements !== undefined && sameElements(known.elements, elements)) return known.set
  const steps = makeToolSet(elements.map(({ key, tool }) => acceptTool(tool, key)))
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  return keepSet(given, elements, step.value)
}

/**
 * Prepares tools whose schemas come from elsewhere, with a turn of the event loop after each, so that {@link prepareTools} has
 * little to do. It ignores invalid tools: {@link prepareTools} reports them.
 */
export async function prepareInTurns(tools: readonly Tool[]): Promise<void> {
  try {
    const steps = makeToolSet(tools)
    let step = steps.next()
    for (; step.done !== true; step = steps.next()) await nextTurn()
    keepSet(tools, elementsOf(tools), step.value)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
  }
}

/**
 * The tools one by one, each in the form of {@link defineTool} or {@link definePythonTool}. The result of
 * {@link prepareTools} is refused: give the tools that it was made of.
 * @throws TypeError for a value that is not a tool.
 */
export function acceptedTools(given: ToolsInput): readonly (Tool | PythonTool)[] {
  if (typeof given !== 'object' || given === null) throw new TypeError('tools: expected a list of tools or a tool set')
  if ('signatures' in given && given.signatures !== undefined && typeof (given as ToolSet).stubs === 'function')
    throw new TypeError('tools: these tools are already prepared; pass the list or the set that they were made of')
  return allElements(given).map(({ key, tool }) => acceptTool(tool, key))
}

/**
 * Returns what `change` makes of each tool, with the packages of a registry.
 * @throws TypeError as {@link acceptedTools}.
 */
export function mapTools(
  given: ToolsInput,
  change: (tool: Tool | PythonTool) => Tool | PythonTool,
): readonly (Tool | PythonTool)[] | ToolSource {
  const tools = acceptedTools(given).map(change)
  const dependencies = ownDependencies(given)
  return dependencies === undefined ? tools : { tools, dependencies }
}

function keepSet(given: ToolsInput, elements: readonly Element[], set: ToolSet): ToolSet {
  prepared.set(given, { elements, set })
  prepared.set(set, { elements: undefined, set })
  return set
}

/** The packages that tools need, as `pip` names them: of Python tools, and of all tools of a registry. */
export function dependenciesOf(given: ToolsInput): readonly string[] {
  const named = [...prepareTools(given).pythonTools.values()].flatMap((tool) => tool.dependencies)
  return ownDependencies(given) ?? [...new Set(named)]
}

/** The packages that a registry names; undefined for tools in any other form. */
function ownDependencies(given: ToolsInput): readonly string[] | undefined {
  const { dependencies } = given as { readonly dependencies?: unknown }
  // A record of tools may have one of that name.
  return Array.isArray(dependencies) ? (dependencies as readonly string[]) : undefined
}

interface Element {
  readonly key: string | undefined
  readonly tool: unknown
}

/** Released together with the list or record. */
const prepared = new WeakMap<object, { readonly elements: readonly Element[] | undefined; readonly set: ToolSet }>()

function isSource(given: object): given is ToolSource {
  return 'tools' in given && Array.isArray(given.tools)
}

function allElements(given: ToolsInput): Element[] {
  return elementsOf(isSource(given) ? [...given.tools, ...(given.pythonTools ?? [])] : given)
}

function elementsOf(given: object): Element[] {
  if (Array.isArray(given)) return given.map((tool: unknown) => ({ key: undefined, tool }))
  return Object.entries(given).map(([key, tool]: [string, unknown]) => ({ key, tool }))
}

function sameElements(a: readonly Element[], b: readonly Element[]): boolean {
  return a.length === b.length && a.every(({ key, tool }, index) => b[index]?.key === key && b[index]?.tool === tool)
}

/** Makes the set in steps of one tool each. */
function* makeToolSet(given: readonly (Tool | PythonTool)[]): Generator<undefined, ToolSet> {
  const named = new Map<string, PreparedTool | PythonTool>()
  const classes = new Map<string, string>()
  const prefixes = new Map<string, number>()
  for (const tool of given) {
    const made = isPythonTool(tool) ? tool : prepareWithUniqueClasses(tool, classes, prefixes)
    const other = named.get(made.name)
    if (other !== undefined) {
      const names = [other, made].map(formatToolName).join(' and ')
      throw new TypeError(`tools: ${names} would both become the function ${made.name}; rename one`)
    }
    named.set(made.name, made)
    if (!isPythonTool(made)) for (const { name, source } of made.classes) classes.set(name, source)
    yield
  }
  const pythonTools = [...named.values()].filter(isPythonTool)
  const all = [...named.values()].filter((tool): tool is PreparedTool => !isPythonTool(tool))
  const stubbed = [...named.values()].map((tool): Stubbed => (isPythonTool(tool) ? { ...tool, classes: [] } : tool))
  const texts = new Map<number, string>()
  let checked: readonly CheckedTool[] | undefined
  return {
    tools: new Map(all.map((tool) => [tool.name, tool])),
    pythonTools: new Map(pythonTools.map((tool) => [tool.name, tool])),
    sources: pythonTools.map(toWireSource),
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

function formatToolName(tool: PreparedTool | PythonTool): string {
  return isPythonTool(tool) ? `the Python tool ${JSON.stringify(tool.name)}` : JSON.stringify(tool.givenName)
}

/** Maximum number of cached texts. */
const MAX_KEPT_TEXTS = 4

/**
 * Prepares a tool so that its class names are unique in the set, except for equal classes.
 * @throws TypeError for a tool whose classes clash with others under every prefix that is tried.
 */
function prepareWithUniqueClasses(
  tool: Tool,
  classes: ReadonlyMap<string, string>,
  prefixes: Map<string, number>,
): PreparedTool {
  const clashes = (made: PreparedTool): boolean =>
    made.classes.some(({ name, source }) => classes.has(name) && classes.get(name) !== source)
  let made = prepareTool(tool)
  const prefix = toPascalCase(made.name)
  for (let attempt = 0; clashes(made); attempt += 1) {
    if (attempt === MAX_PREFIXES)
      throw new TypeError(
        `tools: the classes of ${JSON.stringify(tool.name)} have the names of other tools' classes; rename the tool`,
      )
    // The next tool with the same prefix continues from this number.
    const number = (prefixes.get(prefix) ?? 0) + 1
    prefixes.set(prefix, number)
    made = prepareTool(tool, { classPrefix: `${prefix}${number === 1 ? '' : number}` })
  }
  return made
}

/** Maximum number of prefixes that are tried: each attempt takes the host milliseconds. */
const MAX_PREFIXES = 5

function digestOf(tools: readonly PreparedTool[], pythonTools: readonly PythonTool[]): string {
  const lines = [
    ...tools.map(({ signature, effect }) => JSON.stringify([signature, effect])),
    ...pythonTools.map(({ name, stub, source }) => JSON.stringify([name, stub, source])),
  ]
  return createHash('sha256').update(lines.toSorted().join('\n')).digest('hex')
}
