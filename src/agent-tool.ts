import { checkFiles } from './executor/index.ts'
import { type AsToolOptions, checkAsToolOptions, type RunOptions, type Workspace } from './options/index.ts'
import { cancelledResult, ReviewedRuns } from './reviewed-runs.ts'
import { packagesOf, type ScriptRunner } from './script-runner.ts'
import { filesText, type NamedPackage } from './support/index.ts'
import {
  dependenciesOf,
  prepareTools,
  type RanScript,
  type RunPythonTool,
  runPythonTool,
  withToolApproval,
} from './tools/index.ts'

/**
 * The tool of `Sandglass.asTool`.
 * @throws TypeError for an option that does not exist, SandglassError `invalid_request` for an invalid value.
 */
export function agentTool(runner: ScriptRunner, given: AsToolOptions = {}): RunPythonTool {
  checkAsToolOptions(given)
  const { name, instructions, maxStubChars, maxAnswerChars, maxAnswerFileBytes, onFiles, session, ...options } = given
  const { files, review, ...rest } = options
  const settings = session === undefined ? undefined : runner.sessions.settingsOf(session)
  const workspace = settings?.workspace ?? rest.workspace
  const run = withApproval({ ...settings?.defaults, ...rest, ...(workspace === undefined ? {} : { workspace }) })
  const runs = new ReviewedRuns(runner, review, session)
  const set = run.tools === undefined ? undefined : prepareTools(run.tools)
  if (workspace === undefined) checkFiles(files, { rereadable: true })
  // Files are put into a workspace only once, because scripts may change them.
  const putOnce = runOnce(async () => {
    if (files !== undefined) await workspace?.put(files)
  })
  const runScript: RunScript = async (script, signal) => {
    const ofRun = {
      ...run,
      ...(files === undefined || workspace !== undefined ? {} : { files }),
      policy: run.policy ?? (session === undefined ? 'standard' : 'off'),
      ...(signal === undefined ? {} : { signal }),
    } as const
    await putOnce()
    return runs.run(script, ofRun)
  }
  return runPythonTool(set, session === undefined ? runScript : runInTurns(runScript), {
    name,
    instructions,
    maxStubChars,
    maxAnswerChars,
    maxAnswerFileBytes,
    onFiles,
    packages: packagesFor(runner, run, workspace),
    scriptPackages: workspace === undefined ? runner.dependencies.scriptPackages : '',
    files: filesText(Object.keys(files ?? {}), run.collect ?? []),
    undoesErrors: settings?.onError === 'rollback',
    lasts: session !== undefined ? 'variables' : workspace !== undefined ? 'files' : 'nothing',
  })
}

/** The packages that the description names. Packages of the run have no version yet: the first call installs them. */
function packagesFor(runner: ScriptRunner, run: RunOptions, workspace: Workspace | undefined): NamedPackage[] {
  const toNamedPackage = (text: string): NamedPackage => ({ name: text, version: '' })
  const ofTools = run.tools === undefined ? [] : dependenciesOf(run.tools)
  const own = workspace === undefined ? undefined : runner.workspaces.environmentOf(workspace)
  const present = own === undefined ? runner.packages : packagesOf(own)
  return [...(run.dependencies?.map(toNamedPackage) ?? present), ...ofTools.map(toNamedPackage)]
}

/** The options of the runs of a tool, with `toolApproval` in their tools. */
function withApproval({ toolApproval, ...run }: Pick<AsToolOptions, 'toolApproval'> & RunOptions): RunOptions {
  if (toolApproval === undefined) return run
  if (run.tools === undefined) throw new TypeError('toolApproval: requires the option tools')
  return { ...run, tools: withToolApproval(run.tools, toolApproval) }
}

type RunScript = (script: string, signal: AbortSignal | undefined) => Promise<RanScript>

/**
 * Begins each call after the previous one has settled: agents call tools concurrently, and a session runs one cell at a time. A call
 * whose signal fires before its turn is cancelled at once.
 */
function runInTurns(act: RunScript): RunScript {
  let last: Promise<unknown> = Promise.resolve()
  return (script, signal) => {
    const turn = last
    const next = awaitTurn(turn, signal).then((hasTurn) => (hasTurn ? act(script, signal) : cancelledResult()))
    last = Promise.allSettled([turn, next])
    return next
  }
}

/** Waits for a turn. False if the signal fires first. */
function awaitTurn(turn: Promise<unknown>, signal: AbortSignal | undefined): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const onAbort = (): void => resolve(false)
  signal?.addEventListener('abort', onAbort, { once: true })
  if (signal?.aborted === true) onAbort()
  void turn.then(() => {
    signal?.removeEventListener('abort', onAbort)
    resolve(true)
  })
  return promise
}

/** Runs `act` until it has succeeded once. */
function runOnce(act: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined
  return async () => {
    done ??= act()
    try {
      await done
    } catch (error) {
      done = undefined
      throw error
    }
  }
}
