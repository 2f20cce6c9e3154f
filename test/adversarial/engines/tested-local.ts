import type { EngineUnderTest } from '../driver/engine.ts'
import { requireLocalEngine } from '../../local-engine.ts'
import { fullDiskIsTold, readOnlyStateIsTold } from './faults/full-state.ts'
import { killedHostLeavesNothing, suspendedHostGoesOn } from './faults/lost-hosts.ts'
import { memoryKillIsTold, memoryKillOfAChildIsNoFailure } from './faults/memory-kills.ts'
import { missingControlsFailClosedOrAreTold, withoutBubblewrapNothingRuns } from './faults/missing-parts.ts'
import { corruptRecordsAreSetAside, twoHostsShareAState } from './faults/shared-state.ts'
import { openEngine } from './local.ts'
import { type LeftOut, NO_BRIDGE, type TestedEngine } from './tested.ts'

const NO_DAEMON = { why: 'the local engine has no daemon and no containers' }

/** The local engine, on bubblewrap. */
export const LOCAL: TestedEngine = {
  name: 'local',
  ready: async () => ({ ...(await requireLocalEngine()), open: () => openEngine() }),
  faults: new Map([
    ['FLT-001', () => withStateOfItsOwn(killedHostLeavesNothing)],
    ['FLT-007', ({ engine }) => memoryKillIsTold(engine)],
    ['FLT-008', ({ engine }) => memoryKillOfAChildIsNoFailure(engine)],
    ['FLT-013', withoutBubblewrapNothingRuns],
    ['FLT-014', missingControlsFailClosedOrAreTold],
    ['FLT-015', fullDiskIsTold],
    ['FLT-016', readOnlyStateIsTold],
    ['FLT-023', () => withStateOfItsOwn(suspendedHostGoesOn)],
    ['FLT-025', corruptRecordsAreSetAside],
    ['FLT-026', twoHostsShareAState],
  ]),
  leftOut: new Map<string, LeftOut>([
    ...['FLT-004', 'FLT-005', 'FLT-010', 'FLT-011', 'FLT-031'].map((id) => [id, NO_DAEMON] as const),
    ...NO_BRIDGE,
  ]),
}

/** Its records are then of the hosts of one case alone. */
async function withStateOfItsOwn(assertion: (engine: EngineUnderTest) => Promise<void>): Promise<void> {
  const engine = openEngine()
  try {
    await assertion(engine)
  } finally {
    await engine.close()
  }
}
