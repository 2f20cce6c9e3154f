import type { Workspace } from '../index.ts'
import type { Given } from './args.ts'
import type { Context } from './context.ts'
import { UsageError } from './failure.ts'
import { InstallLine } from './install-line.ts'
import { parseSandboxFlags } from './options.ts'
import { programFiles, programOptions, withFiles } from './program.ts'
import { startSandglass } from './start.ts'
import { RESET_TERMINAL } from './terminal-text.ts'
import { reword } from './wording.ts'

const DEFAULT_SIZE = { rows: 24, columns: 80 }

/** `sandglass shell`: a terminal in a workspace of its own. Resolves to the exit code of the shell. */
export async function shell(given: Given, context: Context): Promise<number> {
  const [id] = given.positionals
  if (given.positionals.length > 1)
    throw new UsageError('invalid_request', `shell takes one ID, and no ${JSON.stringify(given.positionals[1])}`)
  if (!process.stdin.isTTY || !context.stdout.isTerminal) {
    throw new UsageError('invalid_request', 'shell needs a terminal; for programs there is sandglass exec')
  }
  const { options } = parseSandboxFlags(given, context.engines)
  const program = programOptions(given, context)
  const files = await programFiles(given, context)
  try {
    await using installing = new InstallLine(context)
    const environments = { onProgress: installing.onProgress }
    await using sandglass = await startSandglass({ ...options, environments, poolSize: 0, maxOverflow: 1 }, context)
    await using workspace = await withFiles(sandglass, given, files, context, true, id)
    const { exitCode } = await workspace.exec('sh', ['-c', 'command -v bash'])
    const code = await inTerminal(workspace, exitCode === 0 ? 'bash' : 'sh', ['-i'], program, context)
    if (id !== undefined) await workspace.sync()
    return code
  } catch (error) {
    throw reword(error, 'flags')
  }
}

/** Runs a program in a terminal of the sandbox that is shown in this process's own. Resolves to its exit code. */
export async function inTerminal(
  workspace: Workspace,
  command: string,
  args: readonly string[],
  options: { readonly env: Record<string, string>; readonly secrets: Record<string, string>; readonly cwd?: string },
  { stdout, signal, env }: Context,
): Promise<number> {
  const { stdin } = process
  const size = (): { rows: number; columns: number } => ({
    rows: process.stdout.rows ?? DEFAULT_SIZE.rows,
    columns: process.stdout.columns ?? DEFAULT_SIZE.columns,
  })
  const term = env['TERM']
  await using program = await workspace.start(command, args, {
    ...options,
    env: { ...(term === undefined ? {} : { TERM: term }), ...options.env },
    tty: size(),
    signal,
  })
  const onResize = (): void => {
    if (program.status === 'running') program.resize(size())
  }
  // The terminal of the sandbox turns Ctrl-C into a signal, not this one.
  if (stdin.isTTY) stdin.setRawMode(true)
  process.stdout.on('resize', onResize)
  const typing = (async () => {
    for await (const data of stdin) {
      if (program.status !== 'running') return
      await program.write(data as Uint8Array)
    }
    if (program.status === 'running') program.stdin.end()
  })()
  typing.catch(() => undefined) // the program has ended
  try {
    for await (const { bytes } of program.output) await stdout.write(bytes)
    return (await program.exited).exitCode
  } finally {
    if (stdout.isTerminal) await stdout.write(RESET_TERMINAL)
    process.stdout.off('resize', onResize)
    if (stdin.isTTY) stdin.setRawMode(false)
    stdin.destroy()
  }
}
