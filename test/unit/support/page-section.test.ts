import { expect, test } from 'vitest'
import { sectionOf, withSection } from '../../support/page-section.ts'

const MARKERS = { begin: '<!-- begin -->', end: '<!-- end -->' }
const PAGE = 'before\n\n<!-- begin -->\nold\n<!-- end -->\n\nbehind\n'

test('only the text between the markers is replaced', () => {
  const page = withSection(PAGE, MARKERS, '| new |\n')
  expect(page).toBe('before\n\n<!-- begin -->\n\n| new |\n\n<!-- end -->\n\nbehind\n')
  expect(sectionOf(page, MARKERS)).toBe('| new |')
})

test('writing the same section again changes nothing', () => {
  const page = withSection(PAGE, MARKERS, 'new')
  expect(withSection(page, MARKERS, 'new')).toBe(page)
})

test.each([
  ['no marker', 'x'],
  ['no end', '<!-- begin -->'],
  ['its end before its begin', '<!-- end --> <!-- begin -->'],
])('a page with %s is refused', (_what, page) => {
  const message = 'the page lacks the markers <!-- begin --> and <!-- end -->'
  expect(() => withSection(page, MARKERS, 'new')).toThrow(message)
  expect(() => sectionOf(page, MARKERS)).toThrow(message)
})
