import { SCRIPT_HELPERS } from '../../src/protocol/index.ts'
import { code, markdownTable } from './table.ts'

/** The table of the globals that scripts are given. */
export function scriptHelpers(): string {
  const given = Object.values(SCRIPT_HELPERS).filter(({ when }) => when !== 'reserved')
  return markdownTable(
    ['name', 'meaning', 'there'],
    given.map(({ signature, meaning, when }) => [code(signature), meaning, when === 'tools' ? 'with tools' : 'always']),
  )
}
