import { onDocker } from '../../sandbox/tools/on-engine.ts'
import { hostToolTests } from '../../sandbox/tools/run.ts'

await onDocker(hostToolTests)
