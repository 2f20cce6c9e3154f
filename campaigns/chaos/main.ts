/**
 * Injects random faults into hosts under light load and checks each outcome against its bound:
 * `npm run chaos -- --faults 200 --seed 1 [--engine local|docker|pyodide|all] [--stop SECONDS] [--lanes N] [--only WORDS]
 * [--json FILE] [--doc docs/reliability/chaos.md]`; with `--from FILE --doc PAGE` it injects no fault and writes the figures of
 * such a file into the page. Needs root. The engine docker needs the daemon at DOCKER_HOST, whose image it
 * copies into a daemon of its own (`node scripts/with-docker.ts npm run chaos -- ...`).
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { campaign, kindsOf } from './campaign.ts'
import { summaryOf, tableOf } from './summary.ts'
import { type ChaosRun, fillPage } from './page.ts'
import { MACHINE_ENGINES } from '../../test/support/walls.ts'
import { requireDockerEngine } from '../../test/support/docker-engine.ts'
import { exitOnSignals } from '../../test/support/exit-on-signals.ts'
import { machine } from '../../test/support/machine.ts'

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
const engines = values.engine === 'all' ? MACHINE_ENGINES : MACHINE_ENGINES.filter((name) => name === values.engine)
if (engines.length === 0)
  throw new TypeError(`--engine: ${values.engine} must be one of ${MACHINE_ENGINES.join(', ')}, all`)
const readNumber = (name: 'faults' | 'seed' | 'stop' | 'lanes'): number => {
  const value = Number(values[name])
  if (!Number.isSafeInteger(value) || value < (name === 'seed' ? 0 : 1))
    throw new TypeError(`--${name} must be a whole number from ${name === 'seed' ? 0 : 1}`)
  return value
}

const run =
  values.from === undefined ? await runCampaign() : (JSON.parse(readFileSync(values.from, 'utf8')) as ChaosRun)
const unexpected = run.entries.filter(({ breaches }) => breaches.length > 0).length
console.log(tableOf(summaryOf(run.entries)))
console.log(`${run.entries.length} faults, ${unexpected} unexpected, ${run.minutes} min`)
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(run, null, 1)}\n`)
if (values.doc !== undefined) writeFileSync(values.doc, fillPage(readFileSync(values.doc, 'utf8'), run))
if (unexpected > 0) process.exitCode = 1

async function runCampaign(): Promise<ChaosRun> {
  const { skip, image } = engines.includes('docker') ? await requireDockerEngine() : { skip: false, image: '' }
  if (skip) throw new Error('--engine: docker is not usable here, for the reason above')
  for (const engine of engines) {
    const { leftOut } = kindsOf(engine)
    if (leftOut !== undefined) console.log(`left out: ${leftOut}`)
  }
  const started = performance.now()
  const entries = await campaign({
    faults: readNumber('faults'),
    seed: readNumber('seed'),
    stopMs: readNumber('stop') * 1000,
    lanes: readNumber('lanes'),
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
