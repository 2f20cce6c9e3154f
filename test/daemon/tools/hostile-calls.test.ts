import { hostileCallTests } from '../../sandbox/tools/hostile-calls.ts'
import { onDocker } from '../../sandbox/tools/on-engine.ts'

await onDocker(hostileCallTests)
