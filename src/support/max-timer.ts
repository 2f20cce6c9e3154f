/** The longest time that a timer of the platform can wait, in milliseconds; it fires at once for a longer one. */
export const MAX_TIMER_MS: number = 2 ** 31 - 1
