import { DOCKER } from '../../../../campaigns/adversarial/engines/tested-docker.ts'
import { defences } from '../../../../campaigns/adversarial/suites/defences.ts'

await defences(DOCKER)
