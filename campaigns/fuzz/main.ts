/** Mutated input against both sides of the protocol and readers of stored workspaces, the long form of `test/campaign/fuzz/`: see {@link USAGE}. */
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { localEngine } from '../../src/engines/local/index.ts'
import { brokerCampaign, hostCampaign, treeCampaign } from './campaign.ts'
import type { DriveReport } from './drive.ts'
import { withFigures } from './figures.ts'
import { describeFinding } from './finding.ts'
import { machine } from '../../test/support/machine.ts'

const MiB = 1024 * 1024
/** Allowed growth of memory between the first quarter and the end of a long run. */
const MOST_GROWTH_BYTES = 8 * MiB

const MACHINE = `${machine()}, Node ${process.versions.node}`
const PAGE = new URL('../../docs/reliability/fuzzing.md', import.meta.url)

const USAGE = `Mutated input against both sides of the protocol and readers of stored workspaces:

  npm run fuzz -- --host 1000000 --broker 200000 --trees 100000 --seed 1
  npm run fuzz -- --only host:123 --seed 1
  npm run fuzz -- --stall [--only WORDS]

  --host N, --broker N, --trees N  the number of cases of a part
  --seed N                         decides the cases (1)
  --only SIDE:NUMBER               repeats one case; with --stall: the entry points whose names contain this
  --stall                          drives every entry point of hostile bytes with growing input instead (7 minutes, on an idle machine)
  --write                          puts the figures into docs/reliability/fuzzing.md, with --stall into docs/reliability/stalls.md
  --help                           shows this

Ends with 1 on any finding.`

const { values } = parseArgs({
  options: {
    help: { type: 'boolean', default: false },
    seed: { type: 'string', default: '1' },
    host: { type: 'string', default: '0' },
    broker: { type: 'string', default: '0' },
    trees: { type: 'string', default: '0' },
    only: { type: 'string' },
    write: { type: 'boolean', default: false },
    stall: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(USAGE)
  process.exit()
}
if (values.stall) {
  const { reportStalls } = await import('./stall/report.ts')
  process.exit(
    await reportStalls({
      ...(values.only === undefined ? {} : { only: values.only }),
      write: values.write,
      machine: MACHINE,
    }),
  )
}

const reports: DriveReport[] = []
const engine = localEngine()
const usable = (await engine.report()).usable
if (!usable) console.log('the local engine is not usable here: no case runs in a sandbox')
const seed = wholeNumber('seed', values.seed)
const onReport = (report: DriveReport): void => {
  reports.push(report)
  print(report)
  if (values.write) writeFileSync(PAGE, withFigures(readFileSync(PAGE, 'utf8'), [report], seed, MACHINE))
}
if (values.only === undefined) {
  const host = wholeNumber('host', values.host)
  const broker = wholeNumber('broker', values.broker)
  const trees = wholeNumber('trees', values.trees)
  if (host + broker + trees === 0) throw new TypeError('give --host N, --broker N, --trees N or --only SIDE:NUMBER')
  console.log(`seed ${seed}, ${MACHINE}`)
  if (host > 0) await hostCampaign({ seed, count: host, onReport, onProgress })
  if (broker > 0) await brokerCampaign({ seed, count: broker, onReport, onProgress, ...(usable ? { engine } : {}) })
  if (trees > 0) await treeCampaign({ seed, count: trees, onReport, onProgress, ...(usable ? { engine } : {}) })
} else {
  const [, side = '', number = ''] = /^(\w+):(\d+)$/.exec(values.only) ?? []
  const only = { side, number: wholeNumber('only', number) }
  await hostCampaign({ seed, count: 1, only, onReport })
  await brokerCampaign({ seed, count: 1, only, onReport, ...(usable ? { engine } : {}) })
  await treeCampaign({ seed, count: 1, only, onReport, ...(usable ? { engine } : {}) })
  if (reports.length === 0)
    throw new TypeError(
      `--only ${values.only}: no such case; examples are host:5, silent:5, broker:5, sandbox:5, tree:5 and restore:5`,
    )
}
await engine.close()

const cases = reports.reduce((sum, report) => sum + report.cases, 0)
const findings = reports.flatMap((report) => report.findings)
const grown = reports.filter(
  ({ memoryAtQuarter, memoryAtEnd, cases: of }) => of >= 10_000 && memoryAtEnd - memoryAtQuarter > MOST_GROWTH_BYTES,
)
console.log(`${cases} cases, ${findings.length} findings, ${grown.length} sides whose memory grew`)
process.exitCode = findings.length + grown.length > 0 ? 1 : 0

function print({
  side,
  cases: of,
  seconds,
  byProperty,
  findings: found,
  hangs,
  slowestMs,
  memoryAtQuarter,
  memoryAtEnd,
}: DriveReport): void {
  for (const finding of found) console.log(describeFinding(finding))
  const memory = [memoryAtQuarter, memoryAtEnd].map((bytes) => (bytes / MiB).toFixed(1)).join(' then ')
  const slowest = slowestMs === 0 ? '' : `, slowest case ${slowestMs.toFixed(0)} ms`
  console.log(
    `${side}: ${of} cases in ${seconds.toFixed(1)} s, ${found.length} findings, ${hangs} hangs${slowest}, memory in use ${memory} MiB`,
  )
  for (const [property, count] of Object.entries(byProperty)) console.log(`  ${count}  ${property}`)
}

function onProgress(side: string, done: number): void {
  if (done % (side === 'host' ? 100_000 : 10_000) === 0) console.log(`  ${side}: ${done}`)
}

function wholeNumber(name: string, text: string): number {
  if (!/^\d{1,9}$/.test(text))
    throw new TypeError(`--${name}: ${JSON.stringify(text)} must be a whole number of at most nine digits`)
  return Number(text)
}
