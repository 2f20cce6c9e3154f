import { messageOf, SandglassError } from '../errors/index.ts'
import { formatValue, refuseUnknown } from '../support/index.ts'
import { traceSpan } from '../telemetry/index.ts'
import { type BlockSpec, buildBlockSpec, type CodeBlock, type CodeBlockDelimiter } from './blocks.ts'
import type { CodeExecutionInput, CodeExecutionResult } from './code-executor-contract.ts'
import { attrCount, attrExecId, dirOut, inlineSourceDir, spanWorkspaceInline } from './constants.ts'
import type { CallOptions, Engine, Workspace, WorkspacePolicy } from './contract.ts'
import type { File } from './files-contract.ts'
import { invalid } from './invalid.ts'
import type { RunResult } from './programs-contract.ts'
import type { RebindableCodeExecutor } from './run-env.ts'

/** Options of {@link newCodeExecutor}. */
export interface CodeExecutorOptions {
  /** Executes everything in this workspace, where files stay. Default: each execution in a workspace of its own. */
  readonly workspace?: Workspace
  /** The policy of the workspaces that it makes. */
  readonly policy?: WorkspacePolicy
  /** The timeout of each block, in milliseconds. Default: that of the engine. */
  readonly timeoutMs?: number
  /** Default: three backquotes. */
  readonly delimiter?: CodeBlockDelimiter
  /** Removes the files of blocks from `workspace` after they have run. Files that blocks made stay. Default true. */
  readonly cleanTempFiles?: boolean
  /** Globs of the files to return. Default: all below `out/`, and the files that blocks left in their directory. */
  readonly collect?: readonly string[]
}

const FENCE = '```'
/** A shell script. Its arguments are the directory of the blocks, and their names. */
const CLEAN =
  'cd -- "$1" || exit; shift; rm -f -- "$@" __pycache__/code_*; cd .. && rmdir "$OLDPWD/__pycache__" "$OLDPWD"'
/** The first Node that runs TypeScript by removing the types, without a flag. */
const TYPES_STRIPPED = { major: 22, minor: 18 }

/**
 * Makes an executor of code blocks over an engine. Blocks run in the directory `src`, one after the other, even if one fails.
 * @throws TypeError for an option that does not exist.
 */
export function newCodeExecutor(engine: Engine, options: CodeExecutorOptions = {}): RebindableCodeExecutor {
  refuseUnknown('newCodeExecutor', options, [
    'workspace',
    'policy',
    'timeoutMs',
    'delimiter',
    'cleanTempFiles',
    'collect',
  ])
  return {
    engine: () => engine,
    withEngine: (other) => newCodeExecutor(other, options),
    codeBlockDelimiter: () => options.delimiter ?? { start: FENCE, end: FENCE },
    executeCode: async (input, call = {}) => {
      const { codeBlocks, executionId = '' } = checkInput(input)
      const attributes = { [attrExecId]: executionId, [attrCount]: codeBlocks.length }
      return traceSpan(spanWorkspaceInline, attributes, async () => {
        const { workspace } = options
        const ws = workspace ?? (await engine.manager().createWorkspace(executionId, options.policy, call))
        try {
          return await new Execution(engine, ws, options, call).run(codeBlocks)
        } finally {
          if (workspace === undefined) await engine.manager().cleanup(ws)
        }
      })
    },
  }
}

/** One execution. In a workspace that others use, its blocks are in a directory of their own. */
class Execution {
  readonly #engine: Engine
  readonly #ws: Workspace
  readonly #options: CodeExecutorOptions
  readonly #call: CallOptions
  readonly #directory: string
  #nodeProblem: Promise<string | undefined> | undefined

  constructor(engine: Engine, ws: Workspace, options: CodeExecutorOptions, call: CallOptions) {
    this.#engine = engine
    this.#ws = ws
    this.#options = options
    this.#call = call
    this.#directory = options.workspace === undefined ? inlineSourceDir : `${inlineSourceDir}/${crypto.randomUUID()}`
  }

  async run(blocks: readonly CodeBlock[]): Promise<CodeExecutionResult> {
    const written: string[] = []
    let output = ''
    for (const [index, block] of blocks.entries()) {
      const spec = specOf(index, block)
      if (spec instanceof Error) {
        output += failureText(output, index, spec.message)
        continue
      }
      written.push(spec.file)
      await this.#write(spec, block.code)
      output += await this.#output(output, index, spec)
    }
    const outputFiles = await this.#files(written)
    const { workspace, cleanTempFiles = true } = this.#options
    if (workspace !== undefined && cleanTempFiles && written.length > 0) await this.#clean(written)
    return { output, outputFiles }
  }

  /** Removes the blocks and their byte code, and the directory if it is then empty. Blocks may have removed any of these. */
  async #clean(written: readonly string[]): Promise<void> {
    await this.#run('sh', ['-c', CLEAN, 'sh', this.#directory, ...written], '')
  }

  async #write({ file, mode }: BlockSpec, code: string): Promise<void> {
    const content = code.endsWith('\n') ? code : `${code}\n`
    await this.#engine.fs().putFiles(this.#ws, [{ path: `${this.#directory}/${file}`, content, mode }], this.#call)
  }

  async #output(before: string, index: number, { file, cmd, args }: BlockSpec): Promise<string> {
    const problem = file.endsWith('.ts') ? await (this.#nodeProblem ??= this.#findNodeProblem()) : undefined
    if (problem !== undefined) return failureText(before, index, problem)
    const result = await this.#run(cmd, [...args, file])
    const text = result.stdout + (result.stderr === '' ? '' : lineBreak(result.stdout) + result.stderr)
    const failure = failureOf(result, cmd)
    return failure === undefined ? text : text + failureText(before + text, index, failure)
  }

  /** The reason why TypeScript does not run here; undefined if it does. */
  async #findNodeProblem(): Promise<string | undefined> {
    const { exitCode, stdout } = await this.#run('node', ['--version'])
    const least = `typescript needs Node ${TYPES_STRIPPED.major}.${TYPES_STRIPPED.minor} or later`
    const [, major, minor] = /^v(\d+)\.(\d+)\./.exec(stdout) ?? []
    if (exitCode !== 0 || major === undefined) return `${least}; the sandbox has no node`
    const isLater = Number(major) - TYPES_STRIPPED.major || Number(minor) - TYPES_STRIPPED.minor
    return isLater >= 0 ? undefined : `${least}; the sandbox has ${stdout.trim()}`
  }

  #run(cmd: string, args: readonly string[], cwd: string = this.#directory): Promise<RunResult> {
    const { timeoutMs } = this.#options
    const spec = { cmd, args, cwd, ...(timeoutMs === undefined ? {} : { timeoutMs }) }
    return this.#engine.runner().runProgram(this.#ws, spec, this.#call)
  }

  async #files(written: readonly string[]): Promise<readonly File[]> {
    if (written.length === 0) return []
    const blocks = new Set(written.map((file) => `${this.#directory}/${file}`))
    const globs = this.#options.collect ?? [`${dirOut}/**`, `${this.#directory}/**`]
    const files = await this.#engine.fs().collect(this.#ws, globs, this.#call)
    return files.filter(({ name }) => !blocks.has(name) && !name.includes('/__pycache__/'))
  }
}

function checkInput(input: CodeExecutionInput): CodeExecutionInput {
  const { codeBlocks } = input
  if (!Array.isArray(codeBlocks)) throw invalid('codeBlocks', `${formatValue(codeBlocks)} is not an array of blocks`)
  for (const [index, { code, language }] of codeBlocks.entries())
    if (typeof code !== 'string' || typeof language !== 'string')
      throw invalid(`codeBlocks[${index}]`, `${typeof code === 'string' ? 'language' : 'code'} is not a string`)
  return input
}

function specOf(index: number, block: CodeBlock): BlockSpec | Error {
  try {
    return buildBlockSpec(index, block)
  } catch (error) {
    if (error instanceof SandglassError) return new Error(messageOf(error))
    throw error
  }
}

/** Describes the failure of a program; undefined if it succeeded. */
function failureOf({ exitCode, timedOut, durationMs }: RunResult, cmd: string): string | undefined {
  if (timedOut) return `cmd=${cmd}: killed after ${Math.round(durationMs)} ms`
  return exitCode === 0 ? undefined : `cmd=${cmd}: exit code ${exitCode}`
}

function failureText(before: string, index: number, problem: string): string {
  return `${lineBreak(before)}Error executing code block ${index}: ${problem}\n`
}

/** The line break that an incomplete last line needs. */
function lineBreak(text: string): string {
  return text === '' || text.endsWith('\n') ? '' : '\n'
}
