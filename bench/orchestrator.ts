import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jsonlStore, type JournalStore, memoryStore, sqliteStore } from '../src/index.ts'
import { startFloor } from './floor.ts'
import { measureInTurns, type Summary, measureMs } from './measure.ts'
import { ms, ratioRow, type Row } from './row.ts'
import { createSandglass } from './subject.ts'

const SCRIPT = 'emit_result(1)'

/** Measures the time that the orchestrator and each kind of journal add to a warm run, with a model that answers at once. */
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
    const solve = (journal: JournalStore) => (): Promise<number> => measureMs(() => sg.solve('One', { model, journal }))
    const subjects = {
      floor: () => floor.measure(),
      run: () => measureMs(() => sg.run(SCRIPT, { mode: 'plan' })),
      checked: () => measureMs(() => sg.run(SCRIPT, { mode: 'plan', policy: 'strict' })),
      unchecked: () => measureMs(() => sg.solve('One', { model, journal: stores.memory, policy: 'off' })),
      memory: solve(stores.memory),
      jsonl: solve(stores.jsonl),
      sqlite: solve(stores.sqlite),
    }
    await measureInTurns(20, 1, subjects)
    const times = (await measureInTurns(rounds, 5, subjects)) as Record<keyof typeof subjects, Summary>
    const base = times.floor.p50
    const added = (what: keyof typeof subjects, to: keyof typeof subjects): [string, number] => {
      const difference = times[what].p50 - times[to].p50
      return [ms(difference), difference / base]
    }
    return [
      {
        what: `\`sg.solve\`, strict, journal in memory, p50 (n=${times.memory.n})`,
        figure: `${ms(times.memory.p50)}; \`sg.run\` ${ms(times.run.p50)}, with a check ${ms(times.checked.p50)}`,
      },
      ratioRow('added to a run, check included', ...added('memory', 'run'), 2, 'floor'),
      ratioRow('added to a run, unchecked', ...added('unchecked', 'run'), 2, 'floor'),
      ratioRow('added by a journal in SQLite', ...added('sqlite', 'memory'), 0.25, 'floor'),
      ratioRow('added by a journal in a JSONL directory', ...added('jsonl', 'memory'), 0.25, 'floor'),
    ]
  } finally {
    floor.close()
    await Promise.all(Object.values(stores).map((store) => store.close()))
    rmSync(directory, { recursive: true, force: true })
  }
}
