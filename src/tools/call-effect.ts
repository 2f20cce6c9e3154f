/** The part of a call that decides whether it may have had an effect. */
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

/** True if a `write` tool executed, and failed, was too late or outlived the run: it may have had an effect all the same. */
export function mayHaveActed({ effect, ok, error }: EndedCall): boolean {
  return effect === 'write' && !ok && !NOT_EXECUTED.includes(error?.code ?? '')
}
