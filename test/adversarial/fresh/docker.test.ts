import { DOCKER } from '../engines/tested-docker.ts'
import { freshAttacks } from './suite.ts'

await freshAttacks(DOCKER)
