/** The codes of warnings about facts that a model does not see otherwise. */
const TOLD_WARNINGS: readonly string[] = [
  'nan_as_null',
  'branch_lacks_state',
  'session_rolled_back',
  'displays_left_out',
  'secret_in_display',
]

/** Selects the warnings that a model is told. */
export function selectTold<Warning extends { readonly code: string }>(warnings: readonly Warning[]): Warning[] {
  return warnings.filter(({ code }) => TOLD_WARNINGS.includes(code))
}
