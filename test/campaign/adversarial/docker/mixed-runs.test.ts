import { DOCKER } from '../../../../campaigns/adversarial/engines/tested-docker.ts'
import { mixedRuns } from '../../../../campaigns/adversarial/suites/mixed-runs.ts'

await mixedRuns(DOCKER, { warmUp: 200, measured: 800 })
