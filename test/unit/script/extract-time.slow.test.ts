import { describe, expect, test } from 'vitest'
import { MAX_ANSWER_CHARS, findScript } from '../../../src/script/extract.ts'
import { measureBest } from '../../support/measure-best.ts'

/** Half of the 250 ms for which nothing may block the host, because other machines are slower. */
const MOST_MS = 125

describe('the longest answer blocks the host for less than 125 ms, whatever its content', () => {
  const hostile: Readonly<Record<string, string>> = {
    backticks: '`',
    'lines of backticks': '`````\n',
    'a fence and spaces': '```                                ',
    'fences with names': '```python\n',
    tildes: '~',
    angles: '<',
    'opened thoughts': '<think>',
    'thoughts opened and closed': '<think></think>',
    'ends of thoughts': '</think>\n',
    'opened tags': '<code>\n',
    'tags on one line': '<code></code>',
    'ends of tags in a line': '</code>',
    'tags opened and closed': '<code>\n</code>\n',
    'CDATA ends': ']]> ',
    spaces: ' ',
    'blank lines': ' \n',
    letters: 'a',
    'words of a sentence': 'the word ',
    colons: 'if a:#',
    'annotations that are none': 'a: b ',
    brackets: 'a[',
    'pairs of brackets': 'a[] ',
    quotes: '"',
    'triple quotes': '"""\n',
    'mixed triples': `"""\n${"'''"}\n`,
    'equals signs': 'a==',
    'prompts of Python': '>>> a\n',
    'line separators': ':#\u2028',
    braces: '{',
    'lines of code': 'x = 1\n',
    'deeper and deeper': '  (\n',
    'opened tags between ends of lines': '<code>\n\n\n',
    'comments, one per line': '#\n',
    'carriage returns': '\r',
    'ends of lines': '\n',
  }
  /** Nested answers, by their length. */
  const nested: Readonly<Record<string, (length: number) => string>> = {
    'tags in tags': (length) => '<code>'.repeat(length / 6),
    'different tags in tags': (length) => '<code>\n<python>\n'.repeat(length / 16),
    'tags in tags, closed': (length) => '<code>'.repeat(length / 14) + '\n</code>'.repeat(length / 14),
    'tags in tags that end with a string and a fence': (length) =>
      `${'<code>'.repeat(length / 24)}x = 1${'\n</code>\n"""\n```\n'.repeat(length / 24)}`,
    'blocks in a tag': (length) => `<code>\n${'```\nx\n```\n'.repeat(length / 10)}</code>`,
    'tags side by side': (length) => '<code>\n</code>\n<python>\n</python>\n<script>\n</script>\n'.repeat(length / 52),
    'JSON in blocks in tags': (length) => '<python>```json\n{"code":"\n</python>\n'.repeat(length / 36),
    'closed JSON in blocks in tags': (length) => '<python>```json\n{"code":}\n</python>\n'.repeat(length / 36),
  }
  const measure = (answer: string): number => measureBest(() => findScript(answer), 3, MOST_MS)

  test.each(Object.entries(hostile))('%s', (_, unit) => {
    for (const [before, behind] of [
      ['', ''],
      ['<code>', 'x'],
      ['x', '`'],
      ['"""\n', ''],
      ['<code>\n<code>\n', '\n"""\n```\n'],
    ] as const) {
      const answer = (length: number): string =>
        before + unit.repeat(Math.floor((length - before.length - behind.length) / unit.length)) + behind
      expect(measure(answer(MAX_ANSWER_CHARS))).toBeLessThan(MOST_MS)
    }
  })

  test.each(Object.entries(nested))('%s', (_, answer) => {
    expect(measure(answer(MAX_ANSWER_CHARS))).toBeLessThan(MOST_MS)
  })
})
