import { DOCKER } from '../engines/tested-docker.ts'
import { shortTimeouts } from '../suites/short-timeouts.ts'

await shortTimeouts(DOCKER)
