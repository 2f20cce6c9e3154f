import type { CaseMaker } from '../fuzz-case.ts'
import { damagedCase, type StoredWorkspace } from './damaged-case.ts'
import { manifestCase } from './manifest-case.ts'

/** Makes cases for workspaces in a store that an attacker can write, or that is damaged. */
export function treeCases(stored: StoredWorkspace): CaseMaker {
  return (random) => (random.oneIn(4) ? damagedCase(stored, random) : manifestCase(random))
}
