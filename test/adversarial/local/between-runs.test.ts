import { LOCAL } from '../engines/tested-local.ts'
import { betweenRuns } from '../suites/between-runs.ts'

await betweenRuns(LOCAL)
