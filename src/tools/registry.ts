import { createHash } from 'node:crypto'
import { acceptTool, type NamedTool } from './accept.ts'
import { jsonSchemaOf } from './json-schema.ts'
import { isPythonTool, type PythonTool } from './python-tool.ts'
import type { Tool } from './tool.ts'

/** Options of {@link ToolRegistry.register}. */
export interface RegisterOptions {
  /** The sandbox of the tool. Default: that of the tool, else `default`. */
  readonly sandbox?: string
  /** Packages that scripts with this tool need, as `pip` names them. */
  readonly dependencies?: readonly string[]
}

/**
 * The tools of one sandbox and their requirements; accepted wherever tools are. The same object until another tool is
 * registered for the sandbox.
 */
export interface SandboxTools {
  readonly sandbox: string
  /** Tools of the host. */
  readonly tools: readonly Tool[]
  /** Tools that run in the sandbox. */
  readonly pythonTools: readonly PythonTool[]
  /** The packages of all tools, sorted, without duplicates. */
  readonly dependencies: readonly string[]
  /** Secrets of the tools that run in the sandbox, sorted, without duplicates. */
  readonly secrets: readonly string[]
  /** Secrets of the host tools; they stay on the host and are not in `secrets`. */
  readonly hostSecrets: readonly string[]
  /** A digest of all of this, independent of the order of registration. */
  readonly digest: string
}

interface Entry {
  readonly sandbox: string
  readonly tool: Tool | PythonTool
  readonly dependencies: readonly string[]
}

/**
 * A registry of tools by sandbox, with the requirements of each sandbox. A registry is accepted
 * wherever tools are, and represents all its tools.
 */
export class ToolRegistry {
  readonly #entries: Entry[] = []
  #tools: readonly Tool[] = []
  #pythonTools: readonly PythonTool[] = []
  readonly #sandboxes = new Map<string, SandboxTools>()

  /**
   * Registers a tool of the host or of the sandbox.
   * @throws TypeError for a value that is not a tool, and for a name that the sandbox already has.
   */
  register(given: NamedTool, options: RegisterOptions = {}): this {
    const tool = acceptTool(given)
    const sandbox = options.sandbox ?? (isPythonTool(tool) ? tool.sandbox : undefined) ?? 'default'
    if (this.#entries.some((entry) => entry.sandbox === sandbox && entry.tool.name === tool.name)) {
      throw new TypeError(
        `ToolRegistry: the sandbox ${JSON.stringify(sandbox)} already has a tool ${JSON.stringify(tool.name)}; rename one of them`,
      )
    }
    const own = isPythonTool(tool) ? tool.dependencies : []
    this.#entries.push({ sandbox, tool, dependencies: sortUnique([...own, ...(options.dependencies ?? [])]) })
    this.#tools = [...new Set(hostTools(this.#entries))]
    this.#pythonTools = [...new Set(pythonTools(this.#entries))]
    this.#sandboxes.delete(sandbox)
    return this
  }

  /** All host tools, of all sandboxes; the same list until a tool is registered. */
  get tools(): readonly Tool[] {
    return this.#tools
  }

  /** All Python tools, of all sandboxes; the same list until a tool is registered. */
  get pythonTools(): readonly PythonTool[] {
    return this.#pythonTools
  }

  /** The packages of all tools, of all sandboxes, sorted. */
  get dependencies(): readonly string[] {
    return sortUnique(this.#entries.flatMap(({ dependencies }) => dependencies))
  }

  /** Names of the sandboxes that have tools, sorted. */
  get sandboxes(): readonly string[] {
    return sortUnique(this.#entries.map(({ sandbox }) => sandbox))
  }

  /** A digest of all tools and their sandboxes, independent of the order of registration. */
  get digest(): string {
    return digestOf(this.#entries)
  }

  /** The tools of a sandbox and their requirements; empty if it has no tools. */
  forSandbox(name: string): SandboxTools {
    const known = this.#sandboxes.get(name)
    if (known !== undefined) return known
    const entries = this.#entries.filter(({ sandbox }) => sandbox === name)
    const tools = hostTools(entries)
    const ownPythonTools = pythonTools(entries)
    const made: SandboxTools = {
      sandbox: name,
      tools,
      pythonTools: ownPythonTools,
      dependencies: sortUnique(entries.flatMap(({ dependencies }) => dependencies)),
      secrets: sortUnique(ownPythonTools.flatMap(({ secrets }) => secrets)),
      hostSecrets: sortUnique(tools.flatMap(({ secrets }) => secrets)),
      digest: digestOf(entries),
    }
    this.#sandboxes.set(name, made)
    return made
  }
}

function hostTools(entries: readonly Entry[]): Tool[] {
  return entries.map(({ tool }) => tool).filter((tool): tool is Tool => !isPythonTool(tool))
}

function pythonTools(entries: readonly Entry[]): PythonTool[] {
  return entries.map(({ tool }) => tool).filter(isPythonTool)
}

function sortUnique(words: readonly string[]): string[] {
  return [...new Set(words)].toSorted()
}

function digestOf(entries: readonly Entry[]): string {
  const lines = entries.map(({ sandbox, tool, dependencies }) =>
    toCanonicalJson({ sandbox, dependencies, ...(isPythonTool(tool) ? ofPython(tool) : ofHost(tool)) }),
  )
  return createHash('sha256').update(lines.toSorted().join('\n')).digest('hex')
}

function ofPython({ name, description, source, checked, secrets }: PythonTool): object {
  return { name, description, source, checked, secrets: sortUnique(secrets) }
}

function ofHost(tool: Tool): object {
  const { name, description, effect, timeoutMs, maxCalls, concurrency } = tool
  return {
    name,
    description,
    effect,
    limits: { timeoutMs, maxCalls, concurrency },
    secrets: sortUnique(tool.secrets),
    input: jsonSchemaOf(tool.input, 'input'),
    output: tool.output === undefined ? undefined : jsonSchemaOf(tool.output, 'output'),
  }
}

/** JSON with sorted keys. */
function toCanonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  )
}
