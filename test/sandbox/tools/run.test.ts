import { onLocal } from './on-engine.ts'
import { hostToolTests } from './run.ts'

await onLocal(hostToolTests)
