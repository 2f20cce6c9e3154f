/**
 * Lets random faults strike hosts under light load, and holds what comes of each to its bound:
 * `npm run chaos -- --faults 200 --seed 1 [--engine local|docker|pyodide|all] [--stop SECONDS] [--lanes N] [--only WORDS]
 * [--json FILE] [--doc docs/reliability/chaos.md]`; with `--from FILE --doc PAGE` it strikes nothing, and writes the figures of
 * such a file into the page. Needs root; the engine docker the daemon at DOCKER_HOST, whose image it
 * copies into a daemon of its own (`node scripts/with-docker.ts npm run chaos -- ...`).
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { campaign, kindsOf } from '../test/chaos/campaign.ts'
import { summaryOf, tableOf } from '../test/chaos/summary.ts'
import { type ChaosRun, writtenInto } from '../test/chaos/page.ts'
import type { EngineName } from '../test/chaos/site.ts'
import { requireDockerEngine } from '../test/docker-engine.ts'
import { exitOnSignals } from '../test/support/exit-on-signals.ts'
import { machine } from '../test/support/machine.ts'

exitOnSignals()

const { values } = parseArgs({
  options: {
    faults: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    engine: { type: 'string', default: 'local' },
    stop: { type: 'string', default: '30' },
    lanes: { type: 'string', default: '1' },
    only: { type: 'string' },
    json: { type: 'string' },
    doc: { type: 'string' },
    from: { type: 'string' },
  },
})
const ENGINES: readonly EngineName[] = ['local', 'docker', 'pyodide']
const engines = values.engine === 'all' ? ENGINES : ENGINES.filter((name) => name === values.engine)
if (engines.length === 0) throw new TypeError(`--engine: ${values.engine} is none of ${ENGINES.join(', ')}, all`)
const counted = (name: 'faults' | 'seed' | 'stop' | 'lanes'): number => {
  const value = Number(values[name])
  if (!Number.isSafeInteger(value) || value < (name === 'seed' ? 0 : 1))
    throw new TypeError(`--${name}: no such number`)
  return value
}

const run = values.from === undefined ? await struck() : (JSON.parse(readFileSync(values.from, 'utf8')) as ChaosRun)
const unexpected = run.entries.filter(({ breaches }) => breaches.length > 0).length
console.log(tableOf(summaryOf(run.entries)))
console.log(`${run.entries.length} faults, ${unexpected} unexpected, ${run.minutes} min`)
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(run, null, 1)}\n`)
if (values.doc !== undefined) writeFileSync(values.doc, writtenInto(readFileSync(values.doc, 'utf8'), run))
if (unexpected > 0) process.exitCode = 1

async function struck(): Promise<ChaosRun> {
  const { skip, image } = engines.includes('docker') ? await requireDockerEngine() : { skip: false, image: '' }
  if (skip) throw new Error('--engine: docker is not usable here, for the reason above')
  for (const engine of engines) {
    const { leftOut } = kindsOf(engine)
    if (leftOut !== undefined) console.log(`left out: ${leftOut}`)
  }
  const started = performance.now()
  const entries = await campaign({
    faults: counted('faults'),
    seed: counted('seed'),
    stopMs: counted('stop') * 1000,
    lanes: counted('lanes'),
    engines,
    image,
    ...(values.only === undefined ? {} : { only: values.only }),
    onLine: (line) => console.log(line),
  })
  const command = `npm run chaos -- ${process.argv
    .slice(2)
    .filter((word) => !/^--(json|doc)(=|$)|\.(json|md)$/.test(word))
    .join(' ')}`
  return {
    command: engines.includes('docker') ? `node scripts/with-docker.ts ${command}` : command,
    machine: `${machine()}, Node ${process.versions.node}`,
    minutes: Math.round((performance.now() - started) / 60_000),
    entries,
  }
}
