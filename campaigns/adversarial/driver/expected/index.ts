import type { Assertion } from '../run-case.ts'
import { POOL } from './pool.ts'
import { PROMPTS } from './prompts.ts'
import { RUNS } from './runs.ts'
import { TOOLS } from './tools.ts'

/** Assertions for the cases whose `expected` text has no keys. */
export const EXPECTED: ReadonlyMap<string, Assertion> = new Map([...POOL, ...PROMPTS, ...RUNS, ...TOOLS])
