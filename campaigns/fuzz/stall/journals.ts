import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { runPage } from '../../../src/cli/show-html.ts'
import type { StoredRun } from '../../../src/cli/stored-run.ts'
import { type JournalStore, jsonlStore, memoryStore, sqliteStore } from '../../../src/index.ts'
import { recordOf } from '../../../src/journal/index.ts'
import { type EntryPoint, MiB, type Prepared } from './entry-point.ts'
import { hostOf, line } from './peer.ts'

const JOURNALS: readonly {
  name: string
  unit: string
  sizes: readonly number[]
  text: (size: number, event: string) => string
}[] = [
  {
    name: 'a long line',
    unit: 'characters',
    sizes: [10_000, 1_000_000, 8_000_000],
    text: (n, event) => event.replace('"Do it', `"${'x'.repeat(n)}`),
  },
  { name: 'many events', unit: 'events', sizes: [1000, 10_000, 40_000], text: (n, event) => `${event}\n`.repeat(n) },
  {
    name: 'lines that are no events',
    unit: 'lines',
    sizes: [1000, 10_000, 100_000],
    text: (n) => '{"type":"log","message":"x"}\n'.repeat(n),
  },
  { name: 'levels', unit: 'levels', sizes: [1000, 100_000, 2_000_000], text: (n) => '['.repeat(n) },
]

/** Stored journals, in each kind of store. */
export const JOURNAL_ENTRY_POINTS: readonly EntryPoint[] = JOURNALS.flatMap(({ text, ...rest }) => [
  {
    ...rest,
    name: `journal: ${rest.name}`,
    from: 'a journal',
    limitBytes: 16 * MiB,
    prepare: async (size: number) => {
      const directory = mkdtempSync(join(tmpdir(), 'sandglass-stall-'))
      const store = jsonlStore(directory)
      const { runId, lines } = await linesOfTask(rest.name, size, text)
      writeFileSync(join(directory, `${runId}.jsonl`), [...lines, ''].join('\n'))
      return reading(store, runId, directory)
    },
  },
  {
    ...rest,
    name: `sqlite: ${rest.name}`,
    from: 'a journal',
    limitBytes: 16 * MiB,
    prepare: async (size: number) => {
      const directory = mkdtempSync(join(tmpdir(), 'sandglass-stall-'))
      const file = join(directory, 'tasks.sqlite')
      await sqliteStore(file).close()
      const { runId, lines } = await linesOfTask(rest.name, size, text)
      const database = new DatabaseSync(file)
      const insert = database.prepare('INSERT INTO events (run_id, seq, type, at, body) VALUES (?, ?, ?, ?, ?)')
      database.exec('BEGIN')
      lines.flatMap((line) => line.split('\n')).forEach((line, seq) => insert.run(runId, seq, 'log', '', line))
      database.exec('COMMIT')
      database.close()
      return reading(sqliteStore(file), runId, directory)
    },
  },
])

async function linesOfTask(
  name: string,
  size: number,
  text: (size: number, event: string) => string,
): Promise<{ runId: string; lines: readonly string[] }> {
  const store = memoryStore()
  const host = await hostOf([line('final_result', '"data":1')])
  const { record } = await host.solve('Do it', {
    policy: 'off',
    model: () => Promise.resolve('emit_result(1)'),
    journal: store,
  })
  await host.close()
  const events = await store.read(record.runId)
  const [start = '', event = '', ...others] = events.map((one) => JSON.stringify(one))
  return { runId: record.runId, lines: [start, text(size, name === 'a long line' ? start : event), ...others] }
}

function reading(store: JournalStore, runId: string, directory: string): Prepared {
  return {
    act: async () => {
      const events = await store.read(runId)
      await nextTurn()
      const record = recordOf(events)
      await nextTurn()
      return runPage({ record, events, missing: 0 } satisfies StoredRun)
    },
    [Symbol.asyncDispose]: async () => {
      await store.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
