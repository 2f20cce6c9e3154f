/** The longest timer of the platform, in milliseconds; a longer one fires immediately. */
export const MAX_TIMER_MS: number = 2 ** 31 - 1
