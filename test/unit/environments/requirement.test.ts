import { expect, test } from 'vitest'
import { MAX_REQUIREMENTS, parseRequirement, parseRequirements } from '../../../src/environments/requirement.ts'
import { measureBest } from '../../support/measure-best.ts'

test.each([
  ['pandas', 'pandas'],
  ['Pandas >= 2 , < 3', 'pandas<3,>=2'],
  ['ruamel.yaml', 'ruamel-yaml'],
  ['zope_interface', 'zope-interface'],
  ['pandas[Excel, aws]~=2.1', 'pandas[aws,excel]~=2.1'],
  ['numpy==1.26.*', 'numpy==1.26.*'],
  ['torch==2.1.0+cpu', 'torch==2.1.0+cpu'],
  [`tomli; python_version < "3.11"`, 'tomli; python_version < "3.11"'],
  [
    `x; (os_name == 'posix' or sys_platform!="win32") and extra == 'a'`,
    `x; ( os_name == 'posix' or sys_platform != "win32" ) and extra == 'a'`,
  ],
])('a requirement has one normal form: %s', (given, text) => {
  expect(parseRequirement(given).text).toBe(text)
})

// CA-12: no name of a dependency can inject an option, a path, an address or shell syntax.
test.each([
  ['-r requirements.txt', 'is an option'],
  ['--index-url=https://example.com/simple', 'is an option'],
  ['  --pre', 'is an option'],
  ['git+https://example.com/x.git', 'is a URL'],
  ['x @ https://example.com/x.whl', 'is a URL'],
  ['x@file:///etc/passwd', 'is a URL'],
  ['https://example.com/x-1-py3-none-any.whl', 'is a URL'],
  ['./x', 'is a path'],
  ['/etc/passwd', 'is a path'],
  ['..', 'is a path'],
  ['~/x', 'is a path'],
  ['x.whl', 'is a path'],
  ['requirements.txt', 'is a path'],
  ['C:\\x', 'is a path'],
  ['pandas\n-r x', 'is more than one line'],
  ['pandas\r--pre', 'is more than one line'],
  ['раndas', 'is not plain ASCII'],
  ['pandas\u200b', 'is not plain ASCII'],
  ['pandas; rm -rf', 'cannot be parsed from'],
  ['pandas && true', 'cannot be parsed from'],
  ['pandas$(true)', 'cannot be parsed from'],
  ['pandas`true`', 'cannot be parsed from'],
  ['pandas | cat', 'cannot be parsed from'],
  ['pandas --pre', 'cannot be parsed from'],
  ['pandas>=', 'cannot be parsed from'],
  ['pandas>=2,', 'cannot be parsed from'],
  ['pandas 2', 'cannot be parsed from'],
  ['pandas[', 'cannot be parsed from'],
  ['pandas;', 'cannot be parsed from'],
  ['', 'does not begin with the name'],
  ['[x]', 'does not begin with the name'],
  [`x${'y'.repeat(600)}`, 'is longer than 500 characters'],
])('CA-12 %j is refused by name', (given, why) => {
  expect(() => parseRequirement(given)).toThrow(
    expect.objectContaining({ code: 'dependency_invalid', message: expect.stringContaining(why) as string }),
  )
})

test('a list is sorted and has no duplicates', () => {
  expect(parseRequirements(['b', 'a>=1', 'B', 'a >=1']).map(({ text }) => text)).toEqual(['a>=1', 'b'])
})

test.each([
  ['pandas', 'is not a list'],
  [[1], 'is not a string'],
  [
    Array.from({ length: MAX_REQUIREMENTS + 1 }, (_, at) => `p${at}`),
    `257 requirements; the limit is ${MAX_REQUIREMENTS}`,
  ],
])('an invalid list is refused', (given, why) => {
  expect(() => parseRequirements(given)).toThrow(why)
})

test('reading takes time in proportion to the text', () => {
  const texts = [
    `${'a'.repeat(499)}!`,
    `a${',b'.repeat(240)}`,
    `a[${'b,'.repeat(240)}`,
    `a;${'('.repeat(490)}!`,
    ' '.repeat(499),
  ]
  const read = (): void => {
    for (const text of texts) expect(() => parseRequirement(text)).toThrow('dependencies: ')
  }
  expect(measureBest(read)).toBeLessThan(100)
})
