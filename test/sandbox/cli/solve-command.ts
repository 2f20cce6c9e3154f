import { join } from 'node:path'
import { type Cli, type CommandResult, makeCli } from '../../support/cli/sandglass.ts'
import { FAILING_SCRIPT, fence, modelModule, orderTools, REJECTED_SCRIPT, RIGHT_SCRIPT } from './solve-modules.ts'

/** The command `sandglass solve`, with modules that provide tools and models. */
export interface SolveCommand extends Disposable {
  readonly cli: Cli
  /** The module with the tools. */
  readonly tools: string
  /** Modules of models: one solves the task at its first attempt, one at its third, one never. */
  readonly right: string
  readonly learns: string
  readonly fails: string
  /** Runs the command with a journal of its own, in the directory `state` below that of the test. */
  readonly solve: (
    state: string,
    args: readonly string[],
    env?: Readonly<Record<string, string>>,
    input?: string,
  ) => Promise<CommandResult>
}

/** Makes the command and its modules. Dispose of it at the end of the test file. */
export function makeSolveCommand(): SolveCommand {
  const cli = makeCli()
  return {
    cli,
    tools: orderTools(cli),
    right: modelModule(cli, 'right.ts', fence(RIGHT_SCRIPT)),
    learns: modelModule(cli, 'learns.ts', fence(REJECTED_SCRIPT), fence(FAILING_SCRIPT), fence(RIGHT_SCRIPT)),
    fails: modelModule(cli, 'fails.ts', fence(FAILING_SCRIPT)),
    solve: (state, args, env = {}, input = '') =>
      cli.run(['solve', ...args], { env: { XDG_STATE_HOME: join(cli.directory, state), ...env }, input }),
    [Symbol.dispose]: () => cli[Symbol.dispose](),
  }
}

/** Replaces times and ids, which differ from run to run. */
export function maskTimesAndIds(text: string): string {
  return text.replaceAll(/\d+(\.\d+)? m?s\b/g, 'TIME').replaceAll(/\d{8}T\d{9}-[0-9a-f]{8}/g, 'ID')
}
