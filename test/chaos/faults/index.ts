import type { FaultKind } from '../fault.ts'
import { KILLS } from './kills.ts'
import { MEMORY } from './memory.ts'
import { STOPS } from './stops.ts'
import { SURROUNDINGS } from './surroundings.ts'

/** Every kind of fault, with what may come of it: the table. */
export const FAULTS: readonly FaultKind[] = [...KILLS, ...STOPS, ...SURROUNDINGS, ...MEMORY]
