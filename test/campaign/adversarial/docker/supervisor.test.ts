import { DOCKER } from '../../../../campaigns/adversarial/engines/tested-docker.ts'
import { supervisor } from '../../../../campaigns/adversarial/suites/supervisor.ts'

await supervisor(DOCKER)
