import type { ChaosHost } from './host.ts'
import type { Random } from '../../test/support/random.ts'
import type { MachineEngine } from '../../test/support/walls.ts'
import type { Site } from './site.ts'

/** The means of a fault. */
export interface FaultContext {
  readonly site: Site
  readonly host: ChaosHost
  /** Id of the sandbox to hit. */
  readonly victim: string
  /** Duration of a stop, in milliseconds. */
  readonly stopMs: number
  readonly random: Random
  /** A file that sets the clock of the host; used only with {@link FaultKind.fakedClock}. */
  readonly clockFile: string
}

/** Ends the fault. */
export type Lift = () => void | Promise<void>

/** One kind of fault with its allowed outcomes. */
export interface FaultKind {
  readonly fault: string
  readonly target: string
  readonly engines: readonly MachineEngine[]
  /** Work time of the running scripts, in seconds; `deadlineSec` is their deadline. */
  readonly workSec: number
  readonly deadlineSec: number
  /** Allowed outcomes of the run in the sandbox that is hit. */
  readonly victim: readonly RegExp[]
  /** Allowed outcomes of the run in another sandbox. Default: its caller cancels it afterwards. */
  readonly others?: readonly RegExp[]
  /** Allowed outcomes of runs that begin during the fault. Default: completed. */
  readonly meanwhile?: readonly RegExp[]
  /** Allowed time from the start of the fault until the hit runs settle, in milliseconds; with `boundFrom`, from its end. */
  readonly boundMs: number
  readonly boundFrom?: 'lift'
  /** The source of the bound. */
  readonly boundWhy: string
  /** Minimum duration of the fault. Default: until the hit runs settle. */
  readonly holdMs?: (stopMs: number) => number
  /** True when at least one run during the fault must fail; otherwise the fault had no effect. */
  readonly refuses?: boolean
  /** True when the fault ends the host. */
  readonly endsHost?: boolean
  readonly fakedClock?: boolean
  /** Load during the fault: tasks with a journal, or none. Default: scripts. */
  readonly load?: 'tasks' | 'none'
  /** Script of the run to hit, if it must take memory, have a workspace or sessions. */
  readonly script?: 'grow' | 'transfer' | 'sessions'
  strike(context: FaultContext): Lift | Promise<Lift>
}

/** Name of a kind, such as `kill -9: broker`. */
export function nameOf({ fault, target }: FaultKind): string {
  return `${fault}: ${target}`
}
