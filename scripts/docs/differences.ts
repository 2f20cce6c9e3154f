import { KNOWN_DIFFERENCES } from '../../campaigns/adversarial/known-differences.ts'
import { markdownTable } from './table.ts'

/** The table of what a run can see of the runs before it in the same sandbox. */
export function differences(): string {
  return markdownTable(
    ['what can differ', 'why it stays, and what it can carry'],
    KNOWN_DIFFERENCES.map(({ what, why }) => [what, why]),
  )
}
