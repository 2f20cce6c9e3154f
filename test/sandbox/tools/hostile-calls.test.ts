import { hostileCallTests } from './hostile-calls.ts'
import { onLocal } from './on-engine.ts'

await onLocal(hostileCallTests)
