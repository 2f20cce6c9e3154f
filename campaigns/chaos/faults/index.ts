import type { FaultKind } from '../fault.ts'
import { KILLS } from './kills.ts'
import { MEMORY } from './memory.ts'
import { STOPS } from './stops.ts'
import { SURROUNDINGS } from './surroundings.ts'

/** The table of all kinds of faults with their allowed outcomes. */
export const FAULTS: readonly FaultKind[] = [...KILLS, ...STOPS, ...SURROUNDINGS, ...MEMORY]
