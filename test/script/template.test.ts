import { expect, test } from 'vitest'
import { checkTemplate, filled } from '../../src/script/template.ts'

test('placeholders are filled, with or without spaces in them (OR-12)', () => {
  expect(filled('Do {{task}} with {{ tools }}, {{task}}.', { task: 'x', tools: 'y' })).toBe('Do x with y, x.')
})

test('a paragraph whose placeholders all come to nothing is left out', () => {
  const template = 'One.\n\nTools:\n{{tools}}\n\n{{a}} and {{b}}\n\n\n\nEnd.'
  expect(filled(template, { tools: '', a: '', b: 'b' })).toBe('One.\n\n and b\n\nEnd.')
  expect(filled(template, {})).toBe('One.\n\nEnd.')
})

test('what is put in is never looked at again (PAR-010)', () => {
  const hostile = "{{tools}} $& $1 $$ `$' \n\n{{task}}"
  expect(filled('a {{task}} b', { task: hostile, tools: 'T' })).toBe(`a ${hostile} b`)
})

test('a name that every object has is no placeholder that is filled', () => {
  expect(filled('a {{toString}}{{x}} b', { x: 'x' })).toBe('a x b')
  expect(filled('{{constructor}}\n\nb', {})).toBe('b')
})

test('a placeholder that nothing is known for is refused by name', () => {
  expect(() => checkTemplate('first', 'Do {{taks}}', ['task', 'tools'])).toThrow(
    new TypeError('prompts.first: no placeholder {{taks}}. Did you mean "task"? Known are task, tools'),
  )
  expect(() => checkTemplate('first', 5, ['task'])).toThrow(new TypeError('prompts.first: must be a string'))
  expect(() => checkTemplate('first', 'Do {{task}} {x} {{ }} {{a-b}}', ['task'])).not.toThrow()
})

test('time grows with the length of the template and not faster', () => {
  const timed = (unit: string, times: number): number => {
    const template = unit.repeat(times)
    const started = performance.now()
    filled(template, { a: 'x' })
    return performance.now() - started
  }
  for (const unit of ['{', '{{ ', '{{a', '{{a}}', '\n', ' ']) {
    // Eight times the text: a square would take 64 times as long.
    const short = timed(unit, 50_000)
    expect(timed(unit, 400_000)).toBeLessThan(Math.max(28 * short, 100))
  }
})
