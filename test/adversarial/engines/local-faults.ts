import type { Assertion } from '../driver/run-case.ts'
import { fullDiskIsTold, readOnlyStateIsTold } from './faults/full-state.ts'
import { killedHostLeavesNothing, memoryKillIsTold, suspendedHostGoesOn } from './faults/lost-hosts.ts'
import { missingControlsFailClosedOrAreTold, withoutBubblewrapNothingRuns } from './faults/missing-parts.ts'
import { corruptRecordsAreSetAside, twoHostsShareAState } from './faults/shared-state.ts'

/** The faults of a host that concern the local engine. */
export const LOCAL_FAULTS: ReadonlyMap<string, Assertion> = new Map<string, Assertion>([
  ['FLT-001', killedHostLeavesNothing],
  ['FLT-007', memoryKillIsTold],
  ['FLT-013', withoutBubblewrapNothingRuns],
  ['FLT-014', missingControlsFailClosedOrAreTold],
  ['FLT-015', fullDiskIsTold],
  ['FLT-016', readOnlyStateIsTold],
  ['FLT-023', suspendedHostGoesOn],
  ['FLT-025', corruptRecordsAreSetAside],
  ['FLT-026', twoHostsShareAState],
])
