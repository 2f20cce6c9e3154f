import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { startFloor } from './floor.ts'
import { measureMs } from './measure.ts'
import type { Row } from './row.ts'

const REQUESTS = 3000
/** The fastest of so many rounds counts, because other load only slows down. */
const ROUNDS = 3
const NEVER = '10000000'
const CLI = join(import.meta.dirname, '..', 'src', 'cli', 'main.ts')

/**
 * Compares `sandglass batch`, its start included, with as many loops of the floor as there are CPUs; and a batch that replaces
 * sandboxes with one that does not.
 */
export async function batch(python: string): Promise<Row[]> {
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-bench-'))
  const file = join(directory, 'requests.jsonl')
  const lines = Array.from(
    { length: REQUESTS },
    (_, id) => `${JSON.stringify({ id: String(id), script: 'emit_result(1)' })}\n`,
  )
  writeFileSync(file, lines.join(''))
  const least = { floor: Infinity, kept: Infinity, replaced: Infinity }
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      least.floor = Math.min(least.floor, await floorLoops(python, availableParallelism()))
      least.kept = Math.min(least.kept, await measureBatch(file, NEVER))
      least.replaced = Math.min(least.replaced, await measureBatch(file))
    }
  } finally {
    rmSync(directory, { recursive: true })
  }
  const { floor, kept, replaced } = least
  const share = floor / replaced
  const cost = replaced / kept - 1
  return [
    { what: `${availableParallelism()} loops of the floor at once`, figure: perSecond(floor) },
    {
      what: `\`sandglass batch\` of ${REQUESTS} scripts`,
      figure: `${perSecond(replaced)} = ${(share * 100).toFixed(0)} % of these loops`,
      bound: '>= 60 %',
      met: share >= 0.6,
    },
    {
      what: `the same without replacement (\`--max-uses ${NEVER}\`)`,
      figure: `${perSecond(kept)}: replacement costs ${(cost * 100).toFixed(1)} %`,
      bound: '<= 5 %',
      met: cost <= 0.05,
    },
  ]
}

function perSecond(ms: number): string {
  return `${Math.round(REQUESTS / (ms / 1000))}/s`
}

async function floorLoops(python: string, atOnce: number): Promise<number> {
  const floors = Array.from({ length: atOnce }, () => startFloor(python))
  for (const floor of floors) for (let n = 0; n < 20; n += 1) await floor.measure()
  let left = REQUESTS
  const taken = await measureMs(() =>
    Promise.all(
      floors.map(async (floor) => {
        for (; left > 0; left -= 1) await floor.measure()
      }),
    ),
  )
  for (const floor of floors) floor.close()
  return taken
}

function measureBatch(file: string, maxUses?: string): Promise<number> {
  const flags = maxUses === undefined ? [] : ['--max-uses', maxUses]
  return measureMs(async () => {
    const { status, stdout } = spawnSync(process.execPath, [CLI, 'batch', file, '--engine', 'local', ...flags], {
      maxBuffer: 2 ** 28,
    })
    const answers = stdout.toString().split('\n').length - 1
    if (status !== 0 || answers !== REQUESTS)
      throw new Error(`the batch gave ${answers} answers and ended with ${status}`)
  })
}
