import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { storeInDirectory } from '../src/artifacts/index.ts'
import { measureInTurns, measureMs } from './measure.ts'
import { ms, type Row } from './row.ts'
import { createSandglass } from './subject.ts'

const FILES = 10_000
const ROUNDS = 20
const MAX_BEYOND_MS = 50
/** Files that changed within 20 ms of a walk are read again. */
const PAUSE_MS = 50

/** Measures a workspace whose files are kept in a store in a directory: one of many files changed. */
export async function persistence(): Promise<Row[]> {
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-bench-'))
  try {
    await using sg = await createSandglass({ engine: 'local', poolSize: 0 })
    const open = () => sg.workspace({ persist: 'bench', store: storeInDirectory(directory) })
    const ws = await open()
    const content = (index: number): string => `${index}\n`.padEnd(1024, 'x')
    await ws.put(
      Object.fromEntries(Array.from({ length: FILES }, (_, index) => [`d${index % 100}/${index}`, content(index)])),
    )
    const all = await measureMs(() => ws.sync())
    let number = FILES
    const took = await measureInTurns(ROUNDS, PAUSE_MS, {
      walk: () => measureMs(() => Array.fromAsync(ws.list('', { hidden: true }))),
      sync: async () => {
        number += 1
        await ws.put({ 'd7/7': content(number) })
        return measureMs(async () => {
          if ((await ws.sync()).read === 0) throw new Error('the file that changed was not read')
        })
      },
    })
    await ws.close()
    const restored = await measureMs(async () => (await open()).close())
    const [walk, sync] = [took['walk']?.p50 ?? 0, took['sync']?.p50 ?? 0]
    return [
      { what: `${FILES} new files of 1 KiB synchronised`, figure: ms(all) },
      {
        what: `one of them changed, and synchronised, p50 (n=${ROUNDS})`,
        figure: `${ms(sync)} vs ${ms(walk)} for a walk = ${ms(sync - walk)} more`,
        bound: `<= ${MAX_BEYOND_MS} ms more`,
        met: sync - walk <= MAX_BEYOND_MS,
      },
      { what: 'workspace opened and closed by the next owner', figure: ms(restored) },
    ]
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
