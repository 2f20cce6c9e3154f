import { expect, test } from 'vitest'
import { Declarations } from '../../../scripts/docs/declarations.ts'
import { optionsText } from '../../../scripts/docs/options.ts'

const SOURCE = `
export type Color = 'red' | 'blue'
export interface Base {
  /** How many.
   * See {@link Other}. Default 2.
   * @throws never
   */
  readonly count?: number
  /** Left out below. */
  readonly secret: string
}
export interface Given extends Omit<Base, 'secret'>, Partial<Other>, Pick<
  Wide,
  'height' | 'width'
> {
  readonly color?: Color
  /** A callback. */
  readonly onEvent?: ((event: { a: 1 }) => void) | undefined
  /** Of another interface. */
  readonly same: Other['label']
}
export interface Other {
  /** A text. */
  readonly label: string
}
export interface Wide {
  /** In metres. */
  readonly width: number
  /** In metres, too. */
  readonly height?: number
  /** Not picked. */
  readonly depth: number
}
`

test('members have the type and the comment of their declaration, inherited ones first', () => {
  const members = Declarations.ofSources([['given.ts', SOURCE]]).membersOf('Given')
  expect(members).toEqual([
    { name: 'count', required: false, type: 'number', comment: 'How many. See `Other`. Default 2.' },
    { name: 'label', required: false, type: 'string', comment: 'A text.' },
    { name: 'width', required: true, type: 'number', comment: 'In metres.' },
    { name: 'height', required: false, type: 'number', comment: 'In metres, too.' },
    { name: 'color', required: false, type: 'Color', comment: '' },
    { name: 'onEvent', required: false, type: '(event: { a: 1 }) => void', comment: 'A callback.' },
    { name: 'same', required: true, type: 'string', comment: 'Of another interface.' },
  ])
})

test('a short union replaces its name, and a bar in a cell is escaped', () => {
  const source = SOURCE.replace('  readonly color', '  /** Which. */\n  readonly color')
  expect(optionsText(Declarations.ofSources([['given.ts', source]]), 'Given')).toContain(
    String.raw`| ${'`'}color${'`'} | ${'`'}'red' \| 'blue'${'`'} | Which. |`,
  )
})

test('an option without a comment and an unknown interface are errors', () => {
  const declarations = Declarations.ofSources([['given.ts', SOURCE]])
  expect(() => optionsText(declarations, 'Given')).toThrow('Given.color has no doc comment')
  expect(() => declarations.membersOf('Gone')).toThrow('there is no interface Gone')
})
