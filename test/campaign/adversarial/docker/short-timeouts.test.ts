import { DOCKER } from '../../../../campaigns/adversarial/engines/tested-docker.ts'
import { shortTimeouts } from '../../../../campaigns/adversarial/suites/short-timeouts.ts'
import { isFull } from '../../../support/walls.ts'

await shortTimeouts(DOCKER, isFull() ? {} : { rounds: 6 })
