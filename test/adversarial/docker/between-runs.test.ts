import { DOCKER } from '../engines/tested-docker.ts'
import { betweenRuns } from '../suites/between-runs.ts'

await betweenRuns(DOCKER)
