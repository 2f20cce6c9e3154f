import { LOCAL } from '../../../../campaigns/adversarial/engines/tested-local.ts'
import { betweenRuns } from '../../../../campaigns/adversarial/suites/between-runs.ts'

await betweenRuns(LOCAL)
