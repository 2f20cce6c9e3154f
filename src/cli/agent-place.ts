import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type {
  Checkpointer,
  DockerPythonExecutor,
  LocalPythonExecutor,
  PythonExecutorOptions,
} from '../code-agent/index.ts'
import { messageOf, SandglassError } from '../errors/index.ts'
import { pathProblem } from '../executor/index.ts'
import type { SandglassOptions } from '../index.ts'
import { checkRunId, newRunId } from '../journal/index.ts'
import { formatValue } from '../support/index.ts'
import type { Given } from './args.ts'
import { UsageError } from './failure.ts'
import { stateDirectory } from './journal-flag.ts'
import { readFiles } from './run-request.ts'

/** The files of an agent of the command line. */
export interface AgentPlace {
  readonly thread: string
  readonly task: string | undefined
  readonly isResumed: boolean
  readonly directory: string
  /** The conversation, with the proposal that waits. */
  readonly database: string
  /** The working directory of the scripts. */
  readonly files: string
}

/** Finds the agent that the command line names, or a new one. @throws UsageError */
export function agentPlace(given: Given, env: NodeJS.ProcessEnv): AgentPlace {
  const [task, ...others] = given.positionals
  if (others.length > 0)
    throw new UsageError(
      'invalid_request',
      `agent takes one TASK, but also got ${JSON.stringify(others[0])}; quote a task that contains spaces`,
    )
  const resumed = given.last('--resume')
  if (task?.trim() === '' || (task === undefined && resumed === undefined))
    throw new UsageError('invalid_request', 'agent needs a TASK, or --resume ID; see sandglass agent --help')
  const thread = resumed === undefined ? newRunId() : assertId(resumed)
  const directory = join(stateDirectory(env), 'agents', thread)
  if (resumed !== undefined && !existsSync(directory))
    throw new UsageError('invalid_request', `--resume ${thread}: there is no such agent in ${dirname(directory)}`)
  if (resumed === undefined && given.has('--take-over'))
    throw new UsageError('invalid_request', '--take-over belongs to --resume ID')
  const [database, files] = [join(directory, 'thread.sqlite'), join(directory, 'files')]
  return { thread, task, isResumed: resumed !== undefined, directory, database, files }
}

/** Removes an agent whose conversation did not begin. Returns whether there is one to continue. */
export function keepIfBegun({ directory, database }: AgentPlace): boolean {
  if (existsSync(database)) return true
  rmSync(directory, { recursive: true, force: true })
  return false
}

/** Checks an id, which is the name of a directory. */
function assertId(text: string): string {
  try {
    return checkRunId(text)
  } catch {
    throw new UsageError('invalid_request', `--resume: ${formatValue(text)} is not the id of an agent`)
  }
}

/** Makes the working directory, and copies the files of `--file` into it. @throws UsageError naming the flag. */
export async function copyTaskFiles(given: Given, { files }: AgentPlace, signal: AbortSignal): Promise<void> {
  const inputs = Object.entries(await readFiles(given.all('--file'), signal))
  mkdirSync(files, { recursive: true, mode: 0o700 })
  for (const [path, content] of inputs) {
    const isHidden = path.split('/').some((part) => part.startsWith('.') && part !== '..')
    const problem =
      pathProblem(path) ?? (isHidden ? 'scripts of agents get no files whose names begin with a dot' : undefined)
    if (problem !== undefined) throw new UsageError('invalid_request', `--file ${formatValue(path)}: ${problem}`)
    const target = join(files, path)
    try {
      mkdirSync(dirname(target), { recursive: true })
      if (typeof content === 'object' && 'path' in content) copyFileSync(content.path, target)
      else writeFileSync(target, content as Uint8Array)
      await chmod(target, 0o644)
    } catch (error) {
      throw new UsageError('invalid_request', `--file ${formatValue(path)}: ${messageOf(error)}`, { cause: error })
    }
  }
}

/** The executor on the engine of the command line: `local`, or Docker. @throws UsageError for another engine. */
export async function executorFor(
  { engine, local, docker, limits, dependencies }: SandglassOptions,
  options: PythonExecutorOptions,
): Promise<DockerPythonExecutor | LocalPythonExecutor> {
  const executors = await import('../code-agent/index.ts')
  const common = {
    ...options,
    ...(limits && { limits }),
    ...(dependencies && { availableDependencies: dependencies }),
  }
  switch (engine) {
    case 'auto':
    case 'local':
      return new executors.LocalPythonExecutor({ ...common, ...(local && { local }) })
    case 'docker': {
      const { image, ...rest } = docker ?? {}
      const given = { ...common, docker: rest, streamContainerOutput: false }
      return new executors.DockerPythonExecutor(image === undefined ? given : { ...given, image })
    }
    default:
      throw new UsageError('invalid_request', `--engine ${formatValue(engine)}: agent runs scripts on local or docker`)
  }
}

/** Opens the conversation, which outlives this process. @throws SandglassError `langgraph_missing`. */
export async function openThread({ database }: AgentPlace): Promise<Checkpointer> {
  const { SqliteSaver } = await import('@langchain/langgraph-checkpoint-sqlite').catch((error: unknown) => {
    throw new SandglassError(
      'langgraph_missing',
      'agent needs three packages: npm install @langchain/langgraph @langchain/core @langchain/langgraph-checkpoint-sqlite',
      { cause: error },
    )
  })
  return SqliteSaver.fromConnString(database)
}
