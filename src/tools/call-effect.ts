/** The part of a call that tells its effect. */
interface EndedCall {
  readonly effect: string | null
  readonly ok: boolean
  readonly error: { readonly code: string } | null
}

/** The codes of calls that ended before the tool executed. */
const NOT_EXECUTED: readonly string[] = [
  'unknown_tool',
  'invalid_arguments',
  'call_limit',
  'denied',
  'wrong_process',
  'not_called',
  'approval_pending',
]

/** True if a `write` tool executed and gave no good answer: it failed, was too late, or the run ended first. It may have acted. */
export function mayHaveActed({ effect, ok, error }: EndedCall): boolean {
  return effect === 'write' && !ok && !NOT_EXECUTED.includes(error?.code ?? '')
}
