import { join } from 'node:path'
import { type Cli, type Ended, makeCli } from './sandglass.ts'
import { FAILING_SCRIPT, fenced, modelModule, orderTools, REJECTED_SCRIPT, RIGHT_SCRIPT } from './solve-modules.ts'

/** `sandglass solve` with modules for it. */
export interface SolveCommand extends Disposable {
  readonly cli: Cli
  /** The module with the tools. */
  readonly tools: string
  /** Models: one gets it right at once, one at its third attempt, one never. */
  readonly right: string
  readonly learns: string
  readonly fails: string
  /** Runs it with a journal of its own, `state` below the test's directory. */
  readonly solve: (
    state: string,
    args: readonly string[],
    env?: Readonly<Record<string, string>>,
    input?: string,
  ) => Promise<Ended>
}

/** Makes one; dispose of it at the end of the file. */
export function makeSolveCommand(): SolveCommand {
  const cli = makeCli()
  return {
    cli,
    tools: orderTools(cli),
    right: modelModule(cli, 'right.ts', fenced(RIGHT_SCRIPT)),
    learns: modelModule(cli, 'learns.ts', fenced(REJECTED_SCRIPT), fenced(FAILING_SCRIPT), fenced(RIGHT_SCRIPT)),
    fails: modelModule(cli, 'fails.ts', fenced(FAILING_SCRIPT)),
    solve: (state, args, env = {}, input = '') =>
      cli.run(['solve', ...args], { env: { XDG_STATE_HOME: join(cli.directory, state), ...env }, input }),
    [Symbol.dispose]: () => cli[Symbol.dispose](),
  }
}

/** Times and ids differ from run to run. */
export function settled(text: string): string {
  return text.replaceAll(/\d+(\.\d+)? m?s\b/g, 'TIME').replaceAll(/\d{8}T\d{9}-[0-9a-f]{8}/g, 'ID')
}
