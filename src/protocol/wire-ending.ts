/** Causes of endings that a harness reports. */
export const WIRE_CAUSES = ['exit', 'signal', 'timeout', 'output-limit', 'cancelled', 'not-started'] as const
/** The parties that can cause an ending. */
export const WIRE_PARTIES = ['script', 'harness', 'host', 'kernel', 'unknown'] as const

/** The end of a script's process. */
export interface WireEnding {
  cause: (typeof WIRE_CAUSES)[number]
  exit_code: number | null
  signal: string | null
  by: (typeof WIRE_PARTIES)[number]
}
