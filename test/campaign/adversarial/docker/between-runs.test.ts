import { DOCKER } from '../../../../campaigns/adversarial/engines/tested-docker.ts'
import { betweenRuns } from '../../../../campaigns/adversarial/suites/between-runs.ts'
import { isFull } from '../../../support/walls.ts'

await betweenRuns(DOCKER, isFull() ? {} : { rounds: 6 })
