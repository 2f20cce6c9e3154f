import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runPage } from '../../../src/cli/show-html.ts'
import type { StoredRun } from '../../../src/cli/stored-run.ts'
import { jsonlStore } from '../../../src/index.ts'
import { recordOf } from '../../../src/journal/index.ts'
import { type Entrance, MiB } from './entrance.ts'
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

/** Stored journals. */
export const JOURNAL_ENTRANCES: readonly Entrance[] = JOURNALS.map(({ text, ...rest }) => ({
  ...rest,
  name: `journal: ${rest.name}`,
  from: 'a journal',
  limitBytes: 16 * MiB,
  prepare: async (size) => {
    const directory = mkdtempSync(join(tmpdir(), 'sandglass-stall-'))
    const store = jsonlStore(directory)
    const host = await hostOf([line('final_result', '"data":1')])
    const {
      record: { runId },
    } = await host.solve('Do it', {
      policy: 'off',
      model: () => Promise.resolve('emit_result(1)'),
      journal: store,
    })
    await host.close()
    const file = join(directory, `${runId}.jsonl`)
    const [start = '', event = '', ...others] = readFileSync(file, 'utf8').trim().split('\n')
    writeFileSync(file, [start, text(size, rest.name === 'a long line' ? start : event), ...others, ''].join('\n'))
    return {
      act: async () => {
        const events = await store.read(runId)
        const record = recordOf(events)
        return runPage({ record, events, missing: 0 } satisfies StoredRun)
      },
      [Symbol.asyncDispose]: async () => {
        await store.close()
        rmSync(directory, { recursive: true, force: true })
      },
    }
  },
}))
