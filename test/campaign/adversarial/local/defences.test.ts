import { LOCAL } from '../../../../campaigns/adversarial/engines/tested-local.ts'
import { defences } from '../../../../campaigns/adversarial/suites/defences.ts'

await defences(LOCAL)
