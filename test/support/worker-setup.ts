import { flushCompileCache } from 'node:module'
import { afterAll } from 'vitest'
import { useGuestWithoutTypes } from './engines/pyodide/guest-without-types.ts'

/* Runs before each test file that has a process of its own. Node itself loads `src/` there (vitest.config.ts). */
const run = process.env['SANDGLASS_TEST_RUN']
if (run !== undefined) useGuestWithoutTypes(run)
// Node writes what it compiled when a process ends by itself, and vitest kills its workers.
afterAll(() => flushCompileCache())
