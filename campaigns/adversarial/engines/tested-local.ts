import type { EngineUnderTest } from '../driver/engine.ts'
import { requireLocalEngine } from '../../../test/support/local-engine.ts'
import { reportsFullDisk, reportsReadOnlyState } from './faults/full-state.ts'
import { cleansUpAfterKilledHost, resumesSuspendedHost } from './faults/lost-hosts.ts'
import { reportsMemoryKill, toleratesMemoryKillOfChild } from './faults/memory-kills.ts'
import { failsClosedOrReportsMissingControls, refusesToRunWithoutBubblewrap } from './faults/missing-parts.ts'
import { setsCorruptRecordsAside, sharesStateBetweenHosts } from './faults/shared-state.ts'
import { openEngine } from './local.ts'
import { type Exclusion, FILES_OF_THE_HOST, INSTALLATION, NO_BRIDGE, type TestedEngine } from './tested.ts'

const NO_DAEMON = { why: 'the local engine has no daemon and no containers' }

/** Tests of the local engine, which uses bubblewrap. */
export const LOCAL: TestedEngine = {
  name: 'local',
  ready: async () => ({ ...(await requireLocalEngine()), open: () => openEngine() }),
  faults: new Map([
    ['FLT-001', () => withOwnState(cleansUpAfterKilledHost)],
    ['FLT-007', ({ engine }) => reportsMemoryKill(engine)],
    ['FLT-008', ({ engine }) => toleratesMemoryKillOfChild(engine)],
    ['FLT-013', refusesToRunWithoutBubblewrap],
    ['FLT-014', failsClosedOrReportsMissingControls],
    ['FLT-015', reportsFullDisk],
    ['FLT-016', reportsReadOnlyState],
    ['FLT-023', () => withOwnState(resumesSuspendedHost)],
    ['FLT-025', setsCorruptRecordsAside],
    ['FLT-026', sharesStateBetweenHosts],
  ]),
  excluded: new Map<string, Exclusion>([
    ...['FLT-004', 'FLT-005', 'FLT-010', 'FLT-011', 'FLT-031'].map((id) => [id, NO_DAEMON] as const),
    ...NO_BRIDGE,
    ...INSTALLATION,
    ...FILES_OF_THE_HOST,
  ]),
}

/** Uses a new state directory, so that its records belong to the hosts of one case. */
async function withOwnState(assertion: (engine: EngineUnderTest) => Promise<void>): Promise<void> {
  const engine = openEngine()
  try {
    await assertion(engine)
  } finally {
    await engine.close()
  }
}
