import { LOCAL } from '../../../../campaigns/adversarial/engines/tested-local.ts'
import { supervisor } from '../../../../campaigns/adversarial/suites/supervisor.ts'

await supervisor(LOCAL)
