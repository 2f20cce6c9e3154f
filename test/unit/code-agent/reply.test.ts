import { expect, test } from 'vitest'
import { measureOnce } from '../../support/measure-best.ts'
import {
  getExecutionCodeContent,
  getLibrariesContent,
  getTextAfterLastExecutionCode,
  parseReply,
} from '../../../src/code-agent/index.ts'

const code = (text: string): string => `<execution-code>${text}</execution-code>`
const libraries = (text: string): string => `<pip-dependencies-to-install>${text}</pip-dependencies-to-install>`

test.each([
  ['as it is', code('print(1)'), 'print(1)'],
  ['blank: none', code('   \n '), null],
  ['no tags', 'no tags', null],
  ['a closing tag in a string', code("x = '</execution-code>'\nprint(x)"), "x = '</execution-code>'\nprint(x)"],
  ['a fence around it', code('\n```python\nprint(1)\n```\n'), 'print(1)\n'],
  ['a longer fence, with one inside', code('````\nx = """\n```\n"""\n````'), 'x = """\n```\n"""\n'],
  ['CDATA', code("<![CDATA[print(']]')]]>"), "print(']]')"],
  ['entities and line breaks, verbatim', code('\nprint("&lt;")\r\n\n'), '\nprint("&lt;")\r\n\n'],
  ['a fence that does not end', code('```python\nprint(1)'), '```python\nprint(1)'],
])('CA-01 the code of a reply: %s', (_, reply, expected) => {
  expect(getExecutionCodeContent(reply)).toBe(expected)
})

test.each([
  ['names', libraries('requests,pymysql,openpyxl'), ['requests', 'pymysql', 'openpyxl']],
  ['none', libraries(''), []],
  ['no tag', 'x', []],
  ['no end', '<pip-dependencies-to-install>requests', []],
  ['blanks are dropped', libraries('requests,,numpy,'), ['requests', 'numpy']],
  ['as written, for the executor to refuse', libraries('requests; rm -rf /'), ['requests; rm -rf /']],
  ['a name on each line, in a fence', libraries('\n```\npandas\n openpyxl \n```\n'), ['pandas', 'openpyxl']],
  ['extras', libraries('requests[security,socks]>=2,six'), ['requests[security,socks]>=2', 'six']],
  ['a tag in the code is code', `${code(`x = '${libraries('evil')}'`)}${libraries('six')}`, ['six']],
  ['the bounds of a version', libraries('pandas>=2,<3, numpy&gt;=2'), ['pandas>=2,<3', 'numpy>=2']],
])('CA-01 the libraries of a reply: %s', (_, reply, expected) => {
  expect(getLibrariesContent(reply)).toEqual(expected)
})

test('CA-01 the text after the code', () => {
  expect(['x<execution-code>1</execution-code>tail', code('1'), 'no code'].map(getTextAfterLastExecutionCode)).toEqual([
    'tail',
    '',
    'no code',
  ])
})

test.each([
  ['two scripts', `${code('a()')} then ${code('b()')}`, /more than once/],
  ['an opening tag in the script', code('print("<execution-code>")'), /more than once/],
  ['no end', 'Here: <execution-code>print(1)', /no <\/execution-code> after it/],
  ['no beginning', 'print(1)</execution-code>', /no <execution-code> before it/],
  [
    'a list without an end',
    `<pip-dependencies-to-install>six ${code('1')}`,
    /no <\/pip-dependencies-to-install> after it/,
  ],
  ['two lists', `${libraries('a')}${libraries('b')}${code('1')}`, /pip-dependencies-to-install> more than once/],
  ['too many packages', `${libraries('a,'.repeat(50_000))}${code('1')}`, /more packages .* than can be installed/],
  ['the wrong order', '</execution-code>print(1)<execution-code>', /no <\/execution-code> after it/],
])('CA-01 nothing runs where it is unclear what to run: %s', (_, reply, feedback) => {
  expect(parseReply(reply)).toEqual({ kind: 'unclear', feedback: expect.stringMatching(feedback) as string })
})

test('CA-01 a reply is code with its libraries, or an answer', () => {
  expect(parseReply(`I need pandas. ${libraries('pandas')}${code('import pandas')}`)).toEqual({
    kind: 'code',
    code: 'import pandas',
    libraries: ['pandas'],
  })
  expect(parseReply('It is 42.')).toEqual({ kind: 'answer', text: 'It is 42.' })
  expect(parseReply(code(' '))).toEqual({ kind: 'answer', text: code(' ') })
})

test('CA-01 a reply of 1 MB is read in time that grows with its length', () => {
  const replies = [',', '[', '<execution-code>', '</execution-code>', '```\n', '<![CDATA['].map((text) =>
    text.repeat(Math.ceil(1e6 / text.length)),
  )
  for (const reply of replies)
    for (const whole of [reply, code(reply), `${libraries(reply.slice(0, 60_000))}${code('1')}`])
      expect(measureOnce(() => parseReply(whole))).toBeLessThan(200)
})
