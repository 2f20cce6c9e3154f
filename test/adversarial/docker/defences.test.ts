import { DOCKER } from '../engines/tested-docker.ts'
import { defences } from '../suites/defences.ts'

await defences(DOCKER)
