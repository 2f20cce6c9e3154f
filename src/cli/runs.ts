import type { JournalStore, RunSummary } from '../journal/index.ts'
import { countText, truncate } from '../support/index.ts'
import type { Given } from './args.ts'
import { type Context, note } from './context.ts'
import { EXIT } from './exit-codes.ts'
import { msText, plural, whenText } from './figures.ts'
import { existingJournal, foreignFiles, journalPlace } from './journal-flag.ts'
import { nameText } from './foreign-text.ts'
import { parseCount } from './sizes.ts'
import { attemptsOf } from './solve-line.ts'
import { readRun } from './stored-run.ts'
import { table } from './table.ts'
import { escapeForMessage } from './terminal-text.ts'

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100_000
const TASK_CHARS = 60
const NAMED_FILES = 3

/** `sandglass runs`: the tasks of a journal, newest first. Resolves to the exit code. */
export async function runs(given: Given, context: Context): Promise<number> {
  const place = journalPlace(given, context.env)
  const asked = given.last('--limit')
  const limit = asked === undefined ? DEFAULT_LIMIT : parseCount('--limit', asked, 1, MAX_LIMIT)
  const store = existingJournal(place)
  const all = (await store?.list()) ?? []
  const lines = store === undefined ? [] : await linesOf(store, all.slice(0, limit))
  await store?.close()
  if (given.has('--json')) await context.stdout.line(lines)
  else if (lines.length > 0) await context.stdout.write(tableOf(lines))
  else await context.stdout.write(`no tasks in ${escapeForMessage(place.path)} yet\n`)
  if (store === undefined) return EXIT.ok
  if (all.length > lines.length)
    await note(context, `${plural(all.length - lines.length, 'older task')}: --limit N shows more`)
  await reportForeignFiles(foreignFiles(place, new Set(all.map(({ runId }) => runId))), place.path, context)
  return EXIT.ok
}

/** A task in the list; the keys of its JSON. */
interface Line {
  readonly run_id: string
  readonly started_at: string
  /** `damaged`: its beginning cannot be read, and all else is null. */
  readonly status: string
  readonly mode: string | null
  readonly attempts: number | null
  readonly tokens: number | null
  readonly tool_calls: number | null
  readonly duration_ms: number | null
  readonly task: string | null
}

async function linesOf(store: JournalStore, runs_: readonly RunSummary[]): Promise<Line[]> {
  const lines: Line[] = []
  for (const { runId, startedAt } of runs_) {
    const record = (await readRun(store, runId))?.record
    lines.push({
      run_id: runId,
      started_at: startedAt,
      status: record?.status ?? 'damaged',
      mode: record?.mode ?? null,
      attempts: record === undefined ? null : attemptsOf(record).length,
      tokens: record === undefined ? null : record.totalPromptTokens + record.totalCompletionTokens,
      tool_calls: record?.totalToolCalls ?? null,
      duration_ms: record?.durationMs ?? null,
      task: record?.task ?? null,
    })
  }
  return lines
}

function tableOf(lines: readonly Line[]): string {
  const heads = ['RUN', 'STARTED (UTC)', 'STATUS', 'MODE', 'ATTEMPTS', 'TOKENS', 'TIME', 'TASK']
  const rows = lines.map((line) => [
    line.run_id,
    whenText(line.started_at),
    line.status,
    line.mode ?? '-',
    line.attempts === null ? '-' : countText(line.attempts),
    line.tokens === null ? '-' : countText(line.tokens),
    line.duration_ms === null ? '-' : msText(line.duration_ms),
    line.task === null ? '-' : truncate(line.task.trim().replaceAll(/\s+/g, ' '), TASK_CHARS),
  ])
  return table(
    heads,
    rows.map((cells) => cells.map((cell) => escapeForMessage(nameText(cell)))),
  )
}

async function reportForeignFiles(names: readonly string[], path: string, context: Context): Promise<void> {
  if (names.length === 0) return
  const named = names.slice(0, NAMED_FILES).map((name) => JSON.stringify(name))
  const more = names.length > NAMED_FILES ? ` and ${names.length - NAMED_FILES} more` : ''
  const what = names.length === 1 ? 'a file that is not a journal' : 'files that are not journals'
  await note(context, `${path} contains ${what} of a task: ${named.join(', ')}${more}`)
}
