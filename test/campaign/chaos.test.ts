import { expect, test } from 'vitest'
import { requireDockerEngine } from '../support/docker-engine.ts'
import { requireLocalEngine } from '../support/local-engine.ts'
import { requirePrivateDaemon } from '../support/docker-daemon.ts'
import { skipFor } from '../support/required.ts'
import { campaign, kindsOf, lineOf } from '../../campaigns/chaos/campaign.ts'
import type { MachineEngine } from '../support/walls.ts'

/* Injects every kind of fault once, with short stops; `npm run chaos` is the long form. */

const STOP_MS = 2000
const SEED = Number(process.env['SANDGLASS_TEST_SEED'] ?? 1)
const BOUND_MS = 300_000

const { skip: noLocal } = await requireLocalEngine()
const { skip: noDocker, image } = await requireDockerEngine()
const { skip: noDaemon } = requirePrivateDaemon()
if (process.getuid?.() !== 0) skipFor('local', 'chaos mounts disks and moves processes: it needs root')
const noRoot = process.getuid?.() !== 0

const engines: readonly { readonly engine: MachineEngine; readonly isSkipped: boolean }[] = [
  { engine: 'local', isSkipped: noRoot || noLocal },
  { engine: 'docker', isSkipped: noRoot || noDocker || noDaemon },
  { engine: 'pyodide', isSkipped: noRoot },
]

test.for(engines)(
  'each fault of $engine settles within its bound with a named cause, later runs work, nothing is left',
  // One engine after the other: the faults of all three at once take both processors of a small machine, and bounds count seconds.
  { timeout: BOUND_MS },
  async ({ engine, isSkipped }, { skip }) => {
    if (isSkipped) skip('the engine is not usable here, for the reason that is printed above')
    const { kinds, leftOut } = kindsOf(engine)
    if (leftOut !== undefined) console.warn(`skipped: ${leftOut}`)
    const faults = kinds.length
    const entries = await campaign({
      faults,
      seed: SEED,
      engines: [engine],
      stopMs: STOP_MS,
      lanes: 2,
      attempts: 3,
      image,
    })
    console.log(entries.map(lineOf).join('\n'))
    expect(entries.map(({ name }) => name).toSorted()).toHaveLength(faults)
    expect(entries.filter(({ breaches }) => breaches.length > 0).map(lineOf)).toEqual([])
  },
)
