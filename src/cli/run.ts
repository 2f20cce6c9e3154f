import type { ExecutionResult, RunEvent } from '../executor/index.ts'
import type { Given } from './args.ts'
import { type Context, supportsAnsi } from './context.ts'
import { EXIT, exitCodeOf } from './exit-codes.ts'
import { displayFiles } from './display-files.ts'
import { InstallLine } from './install-line.ts'
import { LiveLine } from './live-line.ts'
import { parseSandboxFlags } from './options.ts'
import { toolsOf } from './tools-file.ts'
import { eventLine, resultLine } from './result-line.ts'
import { runRequest, scriptSource } from './run-request.ts'
import { RunReporter } from './run-reporter.ts'
import { notSaved, saveFiles, savingOf } from './save.ts'
import { startSandglass } from './start.ts'
import { UsageError } from './failure.ts'
import type { Sandglass, Workspace, WorkspaceOptions } from '../index.ts'
import { storeInDirectory } from '../artifacts/index.ts'
import { storeDirectory } from './store-directory.ts'
import { readSkill, type Skill } from '../skills/index.ts'
import { Arrivals, Transfer } from './transfer.ts'
import { reword } from './wording.ts'

type Kept = Required<Pick<WorkspaceOptions, 'persist' | 'store'>>

/** `sandglass run`: one script in one sandbox. Resolves to the exit code. */
export async function run(given: Given, context: Context): Promise<number> {
  const { options, mode, policy } = parseSandboxFlags(given, context.engines)
  const { script, files, ...request } = await runRequest(given, context)
  const isForPrograms = given.has('--json') || given.has('--events')
  const transfer = new Transfer(files ?? {}, !isForPrograms && supportsAnsi(context))
  const arrivals = new Arrivals()
  const tools = await toolsOf(given, context)
  const saving = savingOf(given)
  const skills = await skillsOf(given)
  const kept = keptOf(given, context)
  await using installing = new InstallLine(context, { draws: isForPrograms })
  const reporter = isForPrograms
    ? lineReporter(given, context)
    : humanReporter(given, script, context, () => installing.text ?? transfer.text ?? arrivals.text)
  try {
    context.signal.throwIfAborted()
    // A person names the file, so its declarations count. A script from elsewhere is not trusted with packages.
    const fromScript = isFile(given) ? 'declared' : 'off'
    const environments = { fromScript, onProgress: installing.onProgress } as const
    // A workspace uses no sandbox of the pool, so none is started in advance.
    const needsWorkspace = skills.length > 0 || kept !== undefined
    const poolSize = needsWorkspace ? 0 : 1
    const sandglass = await startSandglass({ ...options, environments, poolSize, maxOverflow: 1 - poolSize }, context)
    let result: ExecutionResult
    let syncError: Error | undefined
    try {
      const workspace = needsWorkspace ? await workspaceWith(sandglass, skills, kept, context.signal) : undefined
      result = await sandglass.run(script, {
        ...(workspace === undefined ? {} : { workspace }),
        ...request,
        files: transfer.files,
        mode,
        ...(policy === undefined ? {} : { policy }),
        ...(tools === undefined ? {} : { tools }),
        signal: context.signal,
        onEvent: (event) => {
          if (event.type === 'file') arrivals.take(event)
          return reporter.event(event)
        },
      })
      if (kept !== undefined) await workspace?.sync().catch((error: Error) => (syncError = error))
    } finally {
      await sandglass.close()
    }
    const problems = saving === undefined ? [] : saveFiles(saving, [...result.files, ...displayFiles(result.displays)])
    await reporter.result(withProblems(result, problems))
    if (syncError !== undefined) throw syncError
    const code = exitCodeOf(result.errorKind)
    return code === EXIT.ok && problems.length > 0 ? EXIT.usage : code
  } catch (error) {
    throw reword(error, 'flags')
  } finally {
    await reporter.end()
  }
}

/** The skills of `--skill`. @throws SandglassError `invalid_request` for a directory that is not a skill, and for two with the same name. */
async function skillsOf(given: Given): Promise<readonly Skill[]> {
  const skills = await Promise.all(given.all('--skill').map((directory) => readSkill(directory)))
  const twice = skills.find(({ name }, index) => skills.findIndex((other) => other.name === name) !== index)
  if (twice === undefined) return skills
  throw new UsageError(
    'invalid_request',
    `--skill ${twice.directory}: there are two skills ${twice.name}; give each name once`,
  )
}

/** The workspace of `--workspace`, whose files are kept. @throws UsageError */
function keptOf(given: Given, context: Context): Kept | undefined {
  const persist = given.last('--workspace')
  if (persist !== undefined) return { persist, store: storeInDirectory(storeDirectory(given, context.env)) }
  if (given.has('--store')) throw new UsageError('invalid_request', '--store is the store of --workspace ID; give both')
  return undefined
}

/** Opens a workspace in which each skill is mounted read-only. It ends with the Sandglass. */
async function workspaceWith(
  sandglass: Pick<Sandglass, 'workspace'>,
  skills: readonly Skill[],
  kept: Kept | undefined,
  signal: AbortSignal,
): Promise<Workspace> {
  const workspace = await sandglass.workspace({ ...kept, signal })
  for (const { name, directory } of skills)
    await workspace.addInput(`skills/${name}`, directory, { readOnly: true, signal })
  return workspace
}

/** True if the script is a file that the command line names. */
function isFile(given: Given): boolean {
  const source = scriptSource(given)
  return 'path' in source && source.path !== '-'
}

/** Reports the events and the result of a run. */
interface Reporter {
  event(event: RunEvent): Promise<void>
  result(result: ExecutionResult): Promise<void>
  end(): Promise<void>
}

function lineReporter(given: Given, { stdout }: Context): Reporter {
  return {
    async event(event) {
      if (given.has('--events') && event.type !== 'result') await stdout.line(eventLine(event))
    },
    result: (result) => stdout.line(resultLine(null, result)),
    end: async () => {},
  }
}

function humanReporter(given: Given, script: string, context: Context, otherText: () => string | undefined): Reporter {
  const started = performance.now()
  const status = (): string =>
    otherText() ?? `running for ${((performance.now() - started) / 1000).toFixed(1)} s, Ctrl-C cancels`
  const live = new LiveLine(context.stderr, supportsAnsi(context), status)
  return new RunReporter(context, live, { path: scriptSource(given).name, text: script })
}

function withProblems(result: ExecutionResult, problems: readonly string[]): ExecutionResult {
  return problems.length === 0 ? result : { ...result, warnings: [...result.warnings, ...notSaved(problems)] }
}
