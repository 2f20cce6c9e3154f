#!/usr/bin/env node
import { didYouMean } from '../support/index.ts'
import { type Given, parseArgs } from './args.ts'
import { type Context, note } from './context.ts'
import { EXIT } from './exit-codes.ts'
import { errorLine, failureOf, UsageError } from './failure.ts'
import { type CommandName, COMMANDS, FLAGS } from './flags.ts'
import { COMMAND_HELP, GENERAL_HELP } from './help.ts'
import { Output } from './output.ts'
import { interruption } from './signals.ts'
import { version } from './version.ts'

type Handler = (given: Given, context: Context) => Promise<number>

/** Loaded when they are asked for, so that help and a mistyped flag are answered at once. */
const HANDLERS: Readonly<Record<CommandName, () => Promise<Handler>>> = {
  run: async () => (await import('./run.ts')).run,
  batch: async () => (await import('./batch.ts')).batch,
  doctor: async () => (await import('./doctor.ts')).doctor,
  ps: async () => (await import('./ps.ts')).ps,
  prune: async () => (await import('./ps.ts')).prune,
}
const WORDS: readonly string[] = [...COMMANDS, 'help', '--help', '--version']
const FOREVER_MS = 2 ** 30

await main(process.argv.slice(2))

async function main(argv: readonly string[]): Promise<void> {
  const interrupted = interruption()
  const { signal } = interrupted
  const stdout = new Output(process.stdout, signal, interrupted.readerLeft)
  const stderr = new Output(process.stderr, signal, () => {})
  const context: Context = { stdout, stderr, signal, hasReaderLeft: interrupted.hasReaderLeft, env: process.env }
  // Idle sandboxes do not keep the process alive; a command that waits for one must.
  const awake = setInterval(() => {}, FOREVER_MS)
  let code: number
  try {
    code = await command(argv, context)
  } catch (error) {
    code = await tellFailure(error, wantsJson(argv), context)
  }
  clearInterval(awake)
  process.exitCode = interrupted.received() === undefined ? code : EXIT.cancelled
  // What nobody will ever read would hold the process for good; and an unhurried end gives up the signals first, so that
  // a second Ctrl-C would kill what has only its exit code left to tell.
  if (stdout.stuck || stderr.stuck || interrupted.received() !== undefined) process.exit()
}

async function command(argv: readonly string[], context: Context): Promise<number> {
  const [word, ...rest] = argv
  if (word === undefined) {
    await context.stderr.write(GENERAL_HELP)
    return EXIT.usage
  }
  if (word === '--version' || word === '-V') {
    await context.stdout.write(`${version()}\n`)
    return EXIT.ok
  }
  if (word === '--help' || word === '-h') return help(undefined, context)
  if (word === 'help') return help(rest[0], context)
  const name = commandNamed(word)
  if (rest.includes('--help') || rest.includes('-h')) return help(name, context)
  const given = parseArgs(rest, FLAGS[name])
  if (name !== 'run' && name !== 'batch' && given.positionals.length > 0) {
    throw new UsageError('invalid_request', `${name} takes no ${JSON.stringify(given.positionals[0])}`)
  }
  const handle = await HANDLERS[name]()
  return handle(given, context)
}

async function help(word: string | undefined, { stdout }: Context): Promise<number> {
  await stdout.write(word === undefined ? GENERAL_HELP : COMMAND_HELP[commandNamed(word)])
  return EXIT.ok
}

function commandNamed(word: string): CommandName {
  const known = COMMANDS.find((name) => name === word)
  if (known !== undefined) return known
  if (word === 'check') {
    throw new UsageError('feature_unavailable', 'check: scripts are not checked before they run in this version')
  }
  const what = word.startsWith('-') ? 'flag' : 'command'
  throw new UsageError(
    'invalid_request',
    `no ${what} ${JSON.stringify(word)}.${didYouMean(word, WORDS)} See sandglass --help`,
  )
}

function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  return (end === -1 ? argv : argv.slice(0, end)).some((word) => word === '--json' || word === '--events')
}

async function tellFailure(error: unknown, asJson: boolean, context: Context): Promise<number> {
  const failure = failureOf(error)
  if (context.hasReaderLeft()) return failure.exitCode
  if (asJson) await context.stdout.line(errorLine(failure))
  await note(context, failure.message)
  if (failure.exitCode === EXIT.defect) {
    await note(context, 'this is a defect of Sandglass, please report it with the following')
    await context.stderr.write(`${error instanceof Error ? (error.stack ?? '') : ''}\n`)
  }
  return failure.exitCode
}
