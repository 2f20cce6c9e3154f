import { writeFileSync } from 'node:fs'
import { messageOf } from '../errors/index.ts'
import { formatPath, truncate } from '../support/index.ts'
import type { Given } from './args.ts'
import { type Context, supportsAnsi, note } from './context.ts'
import { EXIT } from './exit-codes.ts'
import { UsageError } from './failure.ts'
import { existingJournal, journalPlace } from './journal-flag.ts'
import { recordLine } from './record-line.ts'
import { runText } from './show-text.ts'
import { findRun, readRun } from './stored-run.ts'
import { escapeForMessage } from './terminal-text.ts'

const MAX_PATH = 200

/** `sandglass show`: one task in full, as text, JSON or a page. Resolves to the exit code. */
export async function show(given: Given, context: Context): Promise<number> {
  const asked = parseRun(given)
  const place = journalPlace(given, context.env)
  const store = existingJournal(place)
  const runId = findRun(asked, (await store?.list()) ?? [], place)
  const run = store === undefined ? undefined : await readRun(store, runId)
  await store?.close()
  if (run === undefined) {
    throw new UsageError(
      'invalid_request',
      `the task ${escapeForMessage(runId)} in ${place.path} is damaged: its first event cannot be read`,
    )
  }
  const { record, missing } = run
  if (given.has('--json')) {
    await context.stdout.line(recordLine(record, missing))
  } else if (given.has('--html')) {
    const [{ hasCharts, runPage }, { loadPlotly }] = await Promise.all([
      import('./show-html.ts'),
      import('./chart-frames.ts'),
    ])
    const page = runPage(run, hasCharts(run.record) ? await loadPlotly() : undefined)
    const out = given.last('--out')
    if (out === undefined) await context.stdout.write(page)
    else {
      writePage(out, page)
      await note(context, `wrote ${out}`)
    }
  } else {
    const coloured = context.stdout.isTerminal && supportsAnsi(context)
    await context.stdout.write(runText(run, coloured))
  }
  return EXIT.ok
}

function parseRun(given: Given): string {
  const [word, ...others] = given.positionals
  if (word === undefined) {
    throw new UsageError(
      'invalid_request',
      'show needs a RUN: an id, the beginning of one, or last; sandglass runs lists them',
    )
  }
  if (others.length > 0) {
    throw new UsageError('invalid_request', `show takes one RUN, but also got ${JSON.stringify(others[0])}`)
  }
  if (given.has('--json') && given.has('--html')) {
    throw new UsageError('invalid_request', '--json and --html cannot be used together')
  }
  if (given.has('--out') && !given.has('--html')) {
    throw new UsageError('invalid_request', '--out FILE is where --html writes its page: add --html')
  }
  return word
}

function writePage(path: string, page: string): void {
  try {
    // A record may hold data that only its owner may read.
    writeFileSync(path, page, { mode: 0o600 })
  } catch (error) {
    throw new UsageError('invalid_request', `--out ${formatPath(path)}: ${truncate(messageOf(error), MAX_PATH)}`, {
      cause: error,
    })
  }
}
