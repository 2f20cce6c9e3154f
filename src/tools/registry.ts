import { createHash } from 'node:crypto'
import { acceptTool, type NamedTool } from './accept.ts'
import { jsonSchemaOf } from './json-schema.ts'
import { isPythonTool, type PythonTool } from './python-tool.ts'
import type { Tool } from './tool.ts'

/** Where a tool belongs. */
export interface RegisterOptions {
  /** Default: the tool's own, else `default`. */
  readonly sandbox?: string
  /** Packages that scripts which use this tool need, as `pip` names them. */
  readonly dependencies?: readonly string[]
}

/**
 * All that one sandbox needs for its tools; it can be given where tools can. The same object as long as nothing is
 * registered for it.
 */
export interface SandboxTools {
  readonly sandbox: string
  /** Tools of the host. */
  readonly tools: readonly Tool[]
  /** Tools that run in the sandbox. */
  readonly pythonTools: readonly PythonTool[]
  /** Of all tools, sorted, each once. */
  readonly dependencies: readonly string[]
  /** Secrets that the tools in the sandbox read, sorted, each once. */
  readonly secrets: readonly string[]
  /** Secrets that stay on the host with its tools; they are not among `secrets`. */
  readonly hostSecrets: readonly string[]
  /** Of all that is said here, whatever the order in which it was registered. */
  readonly digest: string
}

interface Entry {
  readonly sandbox: string
  readonly tool: Tool | PythonTool
  readonly dependencies: readonly string[]
}

/**
 * The mission's registry: tools by sandbox, with what each sandbox needs for them (OR-11). A registry can be given
 * wherever tools can; then all its tools are.
 */
export class ToolRegistry {
  readonly #entries: Entry[] = []
  #tools: readonly Tool[] = []
  #pythonTools: readonly PythonTool[] = []
  readonly #sandboxes = new Map<string, SandboxTools>()

  /**
   * Registers a tool of the host or of the sandbox.
   * @throws TypeError for what is no tool, and for a name that the sandbox has already.
   */
  register(given: NamedTool, options: RegisterOptions = {}): this {
    const tool = acceptTool(given)
    const sandbox = options.sandbox ?? (isPythonTool(tool) ? tool.sandbox : undefined) ?? 'default'
    if (this.#entries.some((entry) => entry.sandbox === sandbox && entry.tool.name === tool.name)) {
      throw new TypeError(
        `ToolRegistry: the sandbox ${JSON.stringify(sandbox)} has a tool ${JSON.stringify(tool.name)} already`,
      )
    }
    const own = isPythonTool(tool) ? tool.dependencies : []
    this.#entries.push({ sandbox, tool, dependencies: sorted([...own, ...(options.dependencies ?? [])]) })
    this.#tools = [...new Set(hostTools(this.#entries))]
    this.#pythonTools = [...new Set(pythonTools(this.#entries))]
    this.#sandboxes.delete(sandbox)
    return this
  }

  /** All tools of the host, of all sandboxes; the same list as long as nothing is registered. */
  get tools(): readonly Tool[] {
    return this.#tools
  }

  /** All tools that are Python themselves, of all sandboxes; the same list as long as nothing is registered. */
  get pythonTools(): readonly PythonTool[] {
    return this.#pythonTools
  }

  /** Names of the sandboxes that have tools, sorted. */
  get sandboxes(): readonly string[] {
    return sorted(this.#entries.map(({ sandbox }) => sandbox))
  }

  /** Of all tools and where they belong: the same whatever the order in which they were registered. */
  get digest(): string {
    return digestOf(this.#entries)
  }

  /** What a sandbox needs; nothing where it has no tools. */
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
      dependencies: sorted(entries.flatMap(({ dependencies }) => dependencies)),
      secrets: sorted(ownPythonTools.flatMap(({ secrets }) => secrets)),
      hostSecrets: sorted(tools.flatMap(({ secrets }) => secrets)),
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

function sorted(words: readonly string[]): string[] {
  return [...new Set(words)].toSorted()
}

function digestOf(entries: readonly Entry[]): string {
  const lines = entries.map(({ sandbox, tool, dependencies }) =>
    canonical({ sandbox, dependencies, ...(isPythonTool(tool) ? ofPython(tool) : ofHost(tool)) }),
  )
  return createHash('sha256').update(lines.toSorted().join('\n')).digest('hex')
}

function ofPython({ name, description, source, checked, secrets }: PythonTool): object {
  return { name, description, source, checked, secrets: sorted(secrets) }
}

function ofHost(tool: Tool): object {
  const { name, description, effect, timeoutMs, maxCalls, concurrency } = tool
  return {
    name,
    description,
    effect,
    limits: { timeoutMs, maxCalls, concurrency },
    secrets: sorted(tool.secrets),
    input: jsonSchemaOf(tool.input, 'input'),
    output: tool.output === undefined ? undefined : jsonSchemaOf(tool.output, 'output'),
  }
}

/** JSON with the keys of each object in order. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  )
}
