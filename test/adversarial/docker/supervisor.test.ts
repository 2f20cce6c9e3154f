import { DOCKER } from '../engines/tested-docker.ts'
import { supervisor } from '../suites/supervisor.ts'

await supervisor(DOCKER)
