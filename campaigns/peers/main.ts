import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { exitOnSignals } from '../../test/support/exit-on-signals.ts'
import { machine } from '../../test/support/machine.ts'
import { startPeersDaemon } from './daemon.ts'
import { install } from './install.ts'
import { measureAll } from './measure-all.ts'
import { peers } from './peers.ts'
import { fillPages, tables } from './render.ts'
import { type Comparison, comparisonSchema } from './result.ts'

const RECORD = join(import.meta.dirname, 'results.json')

/**
 * `npm run bench:peers`: prints the tables of docs/comparison.md; `-- --write` records the run in campaigns/peers/results.json and
 * fills the pages, `--render` fills them from the record alone. `--cache DIR` is where the peers are installed,
 * `--rounds N` the number of warm runs (100), `--only ID,ID` takes some rows, which are not written.
 */
async function main(): Promise<void> {
  if (process.argv.includes('--render')) {
    fillPages(comparisonSchema.parse(JSON.parse(readFileSync(RECORD, 'utf8'))))
    return
  }
  const cache = resolve(
    flag('--cache') ?? join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'sandglass-peers'),
  )
  const warm = Number(flag('--rounds') ?? 100)
  const only = flag('--only')?.split(',')
  const tell = (line: string): void => void process.stderr.write(`${line}\n`)
  exitOnSignals()
  const at = install(cache)
  await using daemon = await startPeersDaemon(at.layer)
  const rows = await measureAll(
    peers(at).filter(({ id }) => only?.includes(id) ?? true),
    {
      daemon,
      versions: at.versions,
      rounds: {
        warm,
        cold: Math.max(3, Math.ceil(warm / 10)),
        tool: Math.max(5, Math.ceil(warm / 10)),
        deadline: warm < 50 ? 1 : 3,
      },
      tell,
    },
  )
  const comparison: Comparison = {
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    versions: { Node: process.versions.node, Python: pythonVersion(at.python), Docker: daemon.version },
    rows,
  }
  process.stdout.write(`${tables(comparison)}\n`)
  if (only !== undefined) process.stdout.write(`${JSON.stringify(rows, undefined, 2)}\n`)
  if (!process.argv.includes('--write') || only !== undefined) return
  writeFileSync(RECORD, `${JSON.stringify(comparisonSchema.parse(comparison), undefined, 2)}\n`)
  fillPages(comparison)
}

function pythonVersion(python: string): string {
  return execFileSync(python, ['-c', 'import platform; print(platform.python_version())'], { encoding: 'utf8' }).trim()
}

function flag(name: string): string | undefined {
  const at = process.argv.indexOf(name)
  return at === -1 ? undefined : process.argv[at + 1]
}

await main()
