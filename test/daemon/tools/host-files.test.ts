import { hostFileTests } from '../../sandbox/tools/host-files.ts'
import { onDocker } from '../../sandbox/tools/on-engine.ts'

await onDocker((at) => hostFileTests(at, 100))
