#!/usr/bin/env node
import { ENGINES } from '../engines/index.ts'
import { SandglassError } from '../errors/index.ts'
import { didYouMean } from '../support/index.ts'
import { type Given, parseArgs } from './args.ts'
import { type Context, note } from './context.ts'
import { EXIT } from './exit-codes.ts'
import { errorLine, failureOf, UsageError } from './failure.ts'
import { ALL_FLAGS, type CommandName, COMMANDS, FLAGS, unknownFlag } from './flags.ts'
import { commandHelp, GENERAL_HELP } from './help.ts'
import { Output } from './output.ts'
import { interruption } from './signals.ts'
import { escapeForMessage } from './terminal-text.ts'
import { version } from './version.ts'

type Handler = (given: Given, context: Context) => Promise<number>

/** Loaded on demand, so that help and errors about flags are fast. */
const HANDLERS: Readonly<Record<CommandName, () => Promise<Handler>>> = {
  run: async () => (await import('./run.ts')).run,
  repl: async () => (await import('./repl.ts')).repl,
  batch: async () => (await import('./batch.ts')).batch,
  check: async () => (await import('./check.ts')).check,
  exec: async () => (await import('./exec.ts')).exec,
  shell: async () => (await import('./shell.ts')).shell,
  solve: async () => (await import('./solve.ts')).solve,
  agent: async () => (await import('./agent.ts')).agent,
  env: async () => (await import('./env.ts')).env,
  workspaces: async () => (await import('./workspaces.ts')).workspaces,
  artifacts: async () => (await import('./artifacts.ts')).artifacts,
  runs: async () => (await import('./runs.ts')).runs,
  show: async () => (await import('./show.ts')).show,
  doctor: async () => (await import('./doctor.ts')).doctor,
  ps: async () => (await import('./ps.ts')).ps,
  prune: async () => (await import('./ps.ts')).prune,
}
const WORDS: readonly string[] = [...COMMANDS, 'help', '--help', '--version']
/** Commands that take positional arguments. */
const TAKES_MORE: readonly CommandName[] = [
  'run',
  'exec',
  'shell',
  'batch',
  'check',
  'solve',
  'agent',
  'env',
  'artifacts',
  'workspaces',
  'show',
]
const FOREVER_MS = 2 ** 30

await main(process.argv.slice(2))

async function main(argv: readonly string[]): Promise<void> {
  const interrupted = interruption()
  const { signal } = interrupted
  const stdout = new Output(process.stdout, signal, interrupted.readerLeft)
  const stderr = new Output(process.stderr, signal, () => {})
  const { isStdoutClosed } = interrupted
  const context: Context = { stdout, stderr, signal, isStdoutClosed, env: process.env, engines: ENGINES }
  // Idle sandboxes do not keep the process alive; a command that waits for one must.
  const awake = setInterval(() => {}, FOREVER_MS)
  let code: number
  try {
    code = await command(argv, context)
  } catch (error) {
    code = await reportFailure(error, wantsJson(argv), context)
  }
  clearInterval(awake)
  process.exitCode = interrupted.received() === undefined ? code : EXIT.cancelled
  // Unread output would keep the process alive. A normal exit would remove the signal handlers first, so that
  // a second Ctrl-C would kill the process before it reports its exit code.
  if (stdout.stuck || stderr.stuck || interrupted.received() !== undefined) process.exit()
}

async function command(argv: readonly string[], context: Context): Promise<number> {
  const [word, ...rest] = argv
  if (word === undefined) {
    await context.stderr.write(GENERAL_HELP)
    return EXIT.usage
  }
  if (word === '--version' || word === '-V') {
    if (wantsJson(argv)) await context.stdout.line({ v: 1, version: version() })
    else await context.stdout.write(`${version()}\n`)
    return EXIT.ok
  }
  // With --json stdout carries JSON only.
  const helpOutput = wantsJson(argv) ? context.stderr : context.stdout
  if (word === '--help' || word === '-h') return help(undefined, helpOutput)
  if (word === 'help') {
    const topic = rest.find((one) => !isJsonFlag(one))
    return help(topic, helpOutput)
  }
  const name = commandNamed(word)
  if (rest.includes('--help') || rest.includes('-h')) return help(name, helpOutput)
  const given = parseArgs(rest, FLAGS[name], (flag) => unknownFlag(flag, name))
  if (!TAKES_MORE.includes(name) && given.positionals.length > 0) {
    throw new UsageError('invalid_request', `${name} takes no ${JSON.stringify(given.positionals[0])}`)
  }
  const handle = await HANDLERS[name]()
  return handle(given, context)
}

async function help(word: string | undefined, output: Output): Promise<number> {
  await output.write(word === undefined ? GENERAL_HELP : commandHelp(commandNamed(word)))
  return EXIT.ok
}

function commandNamed(word: string): CommandName {
  const known = COMMANDS.find((name) => name === word)
  if (known !== undefined) return known
  if (ALL_FLAGS.has(word)) {
    throw new UsageError(
      'invalid_request',
      `no flag ${JSON.stringify(word)} before the command; write it after: sandglass COMMAND ${word}`,
    )
  }
  const what = word.startsWith('-') ? 'flag' : 'command'
  throw new UsageError(
    'invalid_request',
    `no ${what} ${JSON.stringify(word)}.${didYouMean(word, WORDS)} See sandglass --help`,
  )
}

function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  return (end === -1 ? argv : argv.slice(0, end)).some(isJsonFlag)
}

function isJsonFlag(word: string): boolean {
  return word === '--json' || word === '--events'
}

/** After a signal, the signal is the cause; errors that it triggers elsewhere only hide it. */
function causeOf(error: unknown, { signal }: Context): unknown {
  const isCutShort = error instanceof SandglassError && ['aborted', 'pool_closed'].includes(error.code)
  return signal.aborted && isCutShort ? signal.reason : error
}

async function reportFailure(error: unknown, asJson: boolean, context: Context): Promise<number> {
  const failure = failureOf(causeOf(error, context))
  if (context.isStdoutClosed()) return failure.exitCode
  if (asJson) await context.stdout.line(errorLine(failure))
  await note(context, failure.message)
  if (failure.exitCode === EXIT.defect) {
    await note(context, 'this is a defect of Sandglass, please report it with the following')
    await context.stderr.write(`${escapeForMessage(error instanceof Error ? (error.stack ?? '') : '')}\n`)
  }
  return failure.exitCode
}
