import type { ChaosHost } from './host.ts'
import type { Random } from '../support/random.ts'
import type { EngineName, Site } from './site.ts'

/** What a fault has in its hands. */
export interface Ground {
  readonly site: Site
  readonly host: ChaosHost
  /** The sandbox that is to be hit. */
  readonly victim: string
  /** How long something is stopped, in milliseconds. */
  readonly stopMs: number
  readonly random: Random
  /** A file in which the host's clock is set; only where {@link FaultKind.fakedClock} asked for it. */
  readonly clockFile: string
}

/** Takes the fault away again. */
export type Lift = () => void | Promise<void>

/** One kind of fault: what it does, and what may come of it. */
export interface FaultKind {
  readonly fault: string
  readonly target: string
  readonly engines: readonly EngineName[]
  /** How long the scripts under way would work, and when their deadline is, in seconds. */
  readonly workSec: number
  readonly deadlineSec: number
  /** What the run in the sandbox that is hit may come to. */
  readonly victim: readonly RegExp[]
  /** What the run in another sandbox may come to. Default: it is given up by its caller afterwards, and says so. */
  readonly others?: readonly RegExp[]
  /** What runs may come to that begin while the fault is on. Default: they complete. */
  readonly meanwhile?: readonly RegExp[]
  /** From the blow, or from its end, to the last of the hit runs, in milliseconds. */
  readonly boundMs: number
  readonly boundFrom?: 'lift'
  /** Why that bound. */
  readonly boundWhy: string
  /** How long it stays on at least. Default: until the hit runs settled. */
  readonly holdMs?: (stopMs: number) => number
  /** Whether it had no effect when every run that began meanwhile was good. */
  readonly refuses?: boolean
  /** Whether the host is gone by it. */
  readonly endsHost?: boolean
  readonly fakedClock?: boolean
  /** What runs meanwhile: scripts, or tasks with a journal. */
  readonly load?: 'tasks' | 'none'
  /** What is no plain script: one that takes memory. */
  readonly script?: 'grow'
  strike(ground: Ground): Lift | Promise<Lift>
}

/** Words for a kind: `kill -9 of broker (local)`. */
export function nameOf({ fault, target }: FaultKind): string {
  return `${fault}: ${target}`
}
