import { expect, test } from 'vitest'
import { checkTemplate, fillTemplate } from '../../../src/script/template.ts'
import { measureBest } from '../../support/measure-best.ts'

test('placeholders are filled, with or without spaces in them (OR-12)', () => {
  expect(fillTemplate('Do {{task}} with {{ tools }}, {{task}}.', { task: 'x', tools: 'y' })).toBe('Do x with y, x.')
})

test('a paragraph whose placeholders are all empty is left out', () => {
  const template = 'One.\n\nTools:\n{{tools}}\n\n{{a}} and {{b}}\n\n\n\nEnd.'
  expect(fillTemplate(template, { tools: '', a: '', b: 'b' })).toBe('One.\n\n and b\n\nEnd.')
  expect(fillTemplate(template, {})).toBe('One.\n\nEnd.')
})

test('inserted text is not expanded again (PAR-010)', () => {
  const hostile = "{{tools}} $& $1 $$ `$' \n\n{{task}}"
  expect(fillTemplate('a {{task}} b', { task: hostile, tools: 'T' })).toBe(`a ${hostile} b`)
})

test('a name of Object.prototype is not filled', () => {
  expect(fillTemplate('a {{toString}}{{x}} b', { x: 'x' })).toBe('a x b')
  expect(fillTemplate('{{constructor}}\n\nb', {})).toBe('b')
})

test('rejects an unknown placeholder by name', () => {
  expect(() => checkTemplate('first', 'Do {{taks}}', ['task', 'tools'])).toThrow(
    new TypeError('prompts.first: no placeholder {{taks}}. Did you mean "task"? Choose one of: task, tools'),
  )
  expect(() => checkTemplate('first', 5, ['task'])).toThrow(new TypeError('prompts.first: 5 is not a string'))
  expect(() => checkTemplate('first', 'Do {{task}} {x} {{ }} {{a-b}}', ['task'])).not.toThrow()
})

test.each(['{', '{{ ', '{{a', '{{a}}', '\n', ' '])(
  'time grows at most linearly with the length of a template: %j',
  (unit) => {
    const measure = (times: number): number => {
      const template = unit.repeat(times)
      return measureBest(() => fillTemplate(template, { a: 'x' }), 1)
    }
    // Eight times the text: quadratic work would take 64 times as long.
    const short = measure(12_500)
    expect(measure(100_000)).toBeLessThan(Math.max(28 * short, 100))
  },
)
