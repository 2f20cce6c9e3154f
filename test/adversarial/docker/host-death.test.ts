import { DOCKER } from '../engines/tested-docker.ts'
import { hostDeath } from '../suites/host-death.ts'

await hostDeath(DOCKER)
