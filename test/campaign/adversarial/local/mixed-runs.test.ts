import { LOCAL } from '../../../../campaigns/adversarial/engines/tested-local.ts'
import { mixedRuns } from '../../../../campaigns/adversarial/suites/mixed-runs.ts'

await mixedRuns(LOCAL, { warmUp: 400, measured: 1600 })
