import { DOCKER } from '../engines/tested-docker.ts'
import { mixedRuns } from '../suites/mixed-runs.ts'

// With dockerode Node's own memory grows once, by some 30 MiB, in the first 800 runs, and then no more.
await mixedRuns(DOCKER, { warmUp: 900, measured: 600 })
