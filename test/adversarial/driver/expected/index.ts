import type { Assertion } from '../run-case.ts'
import { POOL } from './pool.ts'
import { PROMPTS } from './prompts.ts'
import { RUNS } from './runs.ts'
import { TOOLS } from './tools.ts'

/** What `expected` says of cases that have no keys. */
export const EXPECTED: ReadonlyMap<string, Assertion> = new Map([...POOL, ...PROMPTS, ...RUNS, ...TOOLS])
