import { DOCKER } from '../../../../campaigns/adversarial/engines/tested-docker.ts'
import { acceptanceCases } from '../../../../campaigns/adversarial/suites/cases.ts'

await acceptanceCases(DOCKER)
