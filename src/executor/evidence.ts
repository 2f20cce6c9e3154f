import type { Ending } from '../sandbox/index.ts'
import type { Decision } from './gathered.ts'
import type { Parting } from './parting.ts'
import type { ExecutionMode, RunWarning } from './result.ts'

/** What is known when a run is over. Texts are redacted. */
export interface Evidence {
  readonly decision: Decision | undefined
  readonly parting: Parting
  readonly mode: ExecutionMode
  readonly timeoutSec: number
  readonly maxOutputBytes: number
  /** Whether the caller's signal had asked for the end. */
  readonly aborted: boolean
  /** Whether the kernel killed something of the sandbox for memory during the run. */
  readonly memoryGrew: boolean
  readonly memoryBytes: number
  /** How the sandbox itself ended, when its channel closed and it said so in time. */
  readonly sandboxEnding: Ending | undefined
  readonly warnings: readonly RunWarning[]
}
