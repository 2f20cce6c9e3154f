import { DOCKER } from '../../../../campaigns/adversarial/engines/tested-docker.ts'
import { freshAttacks } from '../../../../campaigns/adversarial/fresh/suite.ts'

await freshAttacks(DOCKER)
