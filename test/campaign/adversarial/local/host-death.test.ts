import { LOCAL } from '../../../../campaigns/adversarial/engines/tested-local.ts'
import { hostDeath } from '../../../../campaigns/adversarial/suites/host-death.ts'

await hostDeath(LOCAL)
