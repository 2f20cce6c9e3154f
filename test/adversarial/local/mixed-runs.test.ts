import { LOCAL } from '../engines/tested-local.ts'
import { mixedRuns } from '../suites/mixed-runs.ts'

await mixedRuns(LOCAL, { warmUp: 400, measured: 1600 })
