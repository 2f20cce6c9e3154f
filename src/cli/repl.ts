import { storeInDirectory } from '../artifacts/index.ts'
import type { SessionOptions } from '../index.ts'
import type { Given } from './args.ts'
import type { Context } from './context.ts'
import { UsageError } from './failure.ts'
import { InstallLine } from './install-line.ts'
import { parseSandboxFlags } from './options.ts'
import { serveLines } from './repl-lines.ts'
import { ReplSession } from './repl-session.ts'
import { savingOf } from './save.ts'
import { startSandglass } from './start.ts'
import { storeDirectory } from './store-directory.ts'
import { toolsOf } from './tools-file.ts'
import { reword } from './wording.ts'

/** `sandglass repl`: cells of one session, from a person or as lines of JSON. Resolves to the exit code. */
export async function repl(given: Given, context: Context): Promise<number> {
  const asLines = given.has('--json')
  if (given.positionals.length > 0)
    throw new UsageError('invalid_request', `repl takes no ${JSON.stringify(given.positionals[0])}`)
  if (!asLines && !(process.stdin.isTTY && context.stdout.isTerminal))
    throw new UsageError('invalid_request', 'repl needs a terminal; programs drive it with --json')
  const { options } = parseSandboxFlags(given, context.engines)
  const saving = savingOf(given)
  const tools = await toolsOf(given, context)
  try {
    await using installing = new InstallLine(context, { draws: asLines })
    const environments = { onProgress: installing.onProgress }
    await using sandglass = await startSandglass({ ...options, environments, poolSize: 0, maxOverflow: 1 }, context)
    const wanted: SessionOptions = { ...keptOf(given, context), ...(tools === undefined ? {} : { tools }) }
    await using session = new ReplSession(await sandglass.session({ ...wanted, signal: context.signal }))
    if (asLines) return await serveLines(session, saving, context)
    const { servePerson } = await import('./repl-person.ts')
    return await servePerson(session, saving, context)
  } catch (error) {
    throw reword(error, 'flags')
  } finally {
    process.stdin.destroy() // a reader of a pipe that nobody closes would keep this process alive
  }
}

/** The workspace of `--workspace`, whose files are kept. @throws UsageError */
function keptOf(given: Given, context: Context): SessionOptions {
  const persist = given.last('--workspace')
  if (persist !== undefined) return { persist, store: storeInDirectory(storeDirectory(given, context.env)) }
  if (given.has('--store')) throw new UsageError('invalid_request', '--store is the store of --workspace ID; give both')
  return {}
}
