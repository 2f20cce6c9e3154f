import { DOCKER } from '../engines/tested-docker.ts'
import { mixedRuns } from '../suites/mixed-runs.ts'

await mixedRuns(DOCKER, { warmUp: 200, measured: 800 })
