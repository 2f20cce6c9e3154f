import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jsonlStore, type JournalStore, memoryStore, sqliteStore } from '../src/index.ts'
import { startFloor } from './floor.ts'
import { interleaved, type Summary, timed } from './measure.ts'
import { ms, ratioRow, type Row } from './row.ts'
import { createSandglass } from './subject.ts'

const SCRIPT = 'emit_result(1)'

/** What the orchestrator adds to a warm run, with a model that answers at once, and what each journal adds to that. */
export async function orchestrator(python: string, rounds: number): Promise<Row[]> {
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-bench-'))
  const floor = startFloor(python)
  const stores = {
    memory: memoryStore(),
    jsonl: jsonlStore(join(directory, 'runs')),
    sqlite: sqliteStore(join(directory, 'runs.db')),
  }
  try {
    await using sg = await createSandglass()
    const model = async (): Promise<string> => SCRIPT
    const solve = (journal: JournalStore) => (): Promise<number> => timed(() => sg.solve('One', { model, journal }))
    const subjects = {
      floor: () => floor.measure(),
      run: () => timed(() => sg.run(SCRIPT, { mode: 'plan' })),
      checked: () => timed(() => sg.run(SCRIPT, { mode: 'plan', policy: 'strict' })),
      unchecked: () => timed(() => sg.solve('One', { model, journal: stores.memory, policy: 'off' })),
      memory: solve(stores.memory),
      jsonl: solve(stores.jsonl),
      sqlite: solve(stores.sqlite),
    }
    await interleaved(20, 1, subjects)
    const times = (await interleaved(rounds, 5, subjects)) as Record<keyof typeof subjects, Summary>
    const base = times.floor.p50
    const added = (what: keyof typeof subjects, to: keyof typeof subjects): [string, number] => {
      const difference = times[what].p50 - times[to].p50
      return [ms(difference), difference / base]
    }
    return [
      {
        what: `\`sg.solve\`, strict, journal in memory, p50 (n=${times.memory.n})`,
        figure: `${ms(times.memory.p50)}, beside \`sg.run\` ${ms(times.run.p50)}, checked ${ms(times.checked.p50)}`,
      },
      ratioRow('what it adds to a run, check included', ...added('memory', 'run'), 2, 'floor'),
      ratioRow('what it adds to a run, unchecked', ...added('unchecked', 'run'), 2, 'floor'),
      ratioRow('what a journal in SQLite adds to that', ...added('sqlite', 'memory'), 0.25, 'floor'),
      ratioRow('what a journal in a JSONL directory adds to that', ...added('jsonl', 'memory'), 0.25, 'floor'),
    ]
  } finally {
    floor.close()
    await Promise.all(Object.values(stores).map((store) => store.close()))
    rmSync(directory, { recursive: true, force: true })
  }
}
