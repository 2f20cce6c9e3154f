/** The places in the memory that a script's clock shares with the watchdog. Times are in milliseconds. */
export const SHARED: {
  readonly on: 0
  /** The time at which the process must end, its waits not counted; 0 while the watchdog has no such task. */
  readonly endsAt: 1
  readonly maxWait: 2
  readonly waited: 3
  /** The start of its current wait; 0 while it does not wait. */
  readonly waitsSince: 4
  /** The number of the cell that the host interrupts; 0 if none. */
  readonly interrupted: 5
  readonly size: 6
} = { on: 0, endsAt: 1, maxWait: 2, waited: 3, waitsSince: 4, interrupted: 5, size: 6 }
