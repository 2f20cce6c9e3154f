import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { errnoOf, messageOf } from '../errors/index.ts'
import { isPythonTool, prepareTools, type ToolSet, type ToolsInput } from '../tools/index.ts'
import { formatPath } from '../support/index.ts'
import { faultPlace } from './fault-place.ts'
import type { Given } from './args.ts'
import { type Context, note } from './context.ts'
import { UsageError } from './failure.ts'
import { consoleToStderr } from './user-console.ts'

/**
 * The tools of `--tools FILE`: a module whose default export, or export `tools`, is a list of tools, a tool set of the AI
 * SDK or a registry, or a function that gives one; else each export that is a tool.
 * @throws UsageError that names the file and what is wrong with it.
 */
export async function toolsOf(given: Given, context: Context): Promise<ToolSet | undefined> {
  return (await loadTools(given, context))?.set
}

/** Returns the same tools as the file exports them, for an agent that wraps them. @throws UsageError */
export async function givenToolsOf(given: Given, context: Context): Promise<ToolsInput | undefined> {
  return (await loadTools(given, context))?.input
}

async function loadTools(
  given: Given,
  context: Context,
): Promise<{ readonly input: ToolsInput; readonly set: ToolSet } | undefined> {
  const path = given.last('--tools')
  if (path === undefined) return undefined
  const input = await inputOf(path, await importModule('--tools', path))
  const set = prepare(path, input)
  if (set.tools.size + set.pythonTools.size === 0) throw wrong(path, NO_TOOLS)
  for (const { from, to } of set.renamed) {
    await note(context, `--tools ${path}: scripts call ${JSON.stringify(from)} by the name ${to}`)
  }
  return { input: input as ToolsInput, set }
}

const NO_TOOLS = 'it exports no tools; export default [defineTool({ … })]'

type Exports = Readonly<Record<string, unknown>>

/**
 * Imports a module that the user names. It runs with all rights of this process; its output by `console.log`
 * goes to stderr.
 * @throws UsageError naming the flag and the file.
 */
export async function importModule(flag: string, path: string): Promise<Exports> {
  const shown = `${flag} ${formatPath(path)}`
  const problem = fileProblem(path)
  if (problem !== undefined) throw new UsageError('invalid_request', `${shown}: ${problem}`)
  consoleToStderr()
  try {
    return (await import(pathToFileURL(resolve(path)).href)) as Exports
  } catch (error) {
    // Remove the path of this program, which does not help the user.
    const reason = messageOf(error).replaceAll(` imported from ${import.meta.filename}`, '')
    const place = faultPlace(error, resolve(path))
    throw new UsageError('invalid_request', `${shown}: it cannot be loaded: ${place}${reason}`, { cause: error })
  }
}

function fileProblem(path: string): string | undefined {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    if (found === undefined) return 'there is no such file'
    return found.isDirectory() ? 'it is a directory' : undefined
  } catch (error) {
    return `it cannot be read: ${errnoOf(error) ?? messageOf(error)}`
  }
}

async function inputOf(path: string, module: Exports): Promise<unknown> {
  const whole = module['default'] ?? module['tools']
  if (typeof whole === 'function') {
    try {
      return await (whole as () => unknown)()
    } catch (error) {
      throw wrong(path, `its function for tools threw: ${messageOf(error)}`, error)
    }
  }
  if (whole !== undefined) return isTool(whole) ? [whole] : whole
  const each = Object.entries(module).filter(([, value]) => isTool(value))
  if (each.length === 0) throw wrong(path, NO_TOOLS)
  // Tools of the AI SDK have no name: they get the name of their export.
  return each.every(([, tool]) => hasName(tool)) ? each.map(([, tool]) => tool) : Object.fromEntries(each)
}

function prepare(path: string, given: unknown): ToolSet {
  try {
    return prepareTools(given as ToolsInput)
  } catch (error) {
    if (error instanceof TypeError) throw wrong(path, error.message, error)
    throw error
  }
}

function isTool(value: unknown): boolean {
  if (isPythonTool(value)) return true
  return typeof value === 'object' && value !== null && ('execute' in value || 'invoke' in value)
}

function hasName(tool: unknown): boolean {
  return typeof tool === 'object' && tool !== null && 'name' in tool && typeof tool.name === 'string'
}

function wrong(path: string, problem: string, cause?: unknown): UsageError {
  return new UsageError('invalid_request', `--tools ${path}: ${problem}`, { cause })
}
