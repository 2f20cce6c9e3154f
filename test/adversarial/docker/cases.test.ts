import { DOCKER } from '../engines/tested-docker.ts'
import { acceptanceCases } from '../suites/cases.ts'

await acceptanceCases(DOCKER)
