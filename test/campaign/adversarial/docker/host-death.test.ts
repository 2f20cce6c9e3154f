import { DOCKER } from '../../../../campaigns/adversarial/engines/tested-docker.ts'
import { hostDeath } from '../../../../campaigns/adversarial/suites/host-death.ts'

await hostDeath(DOCKER)
