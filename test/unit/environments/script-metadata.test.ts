import { expect, test } from 'vitest'
import { readScriptMetadata } from '../../../src/environments/script-metadata.ts'
import { stallDuring } from '../../support/stall.ts'

const block = (...lines: string[]): string => ['# /// script', ...lines, '# ///', 'import x', ''].join('\n')

test('PEP 723: the block of a script names its dependencies', async () => {
  const script = block(
    '# requires-python = ">=3.10"',
    '# dependencies = [',
    '#   "openpyxl>=3",',
    '#',
    '#   "pandas",',
    '# ]',
  )
  expect(await readScriptMetadata(`#!/usr/bin/env python\n\n${script}`)).toEqual({
    requiresPython: '>=3.10',
    dependencies: ['openpyxl>=3', 'pandas'],
  })
})

test('lines may end with CRLF, and other blocks are ignored', async () => {
  const script = `# /// other\n# a = 1\n# ///\n${block('# dependencies = ["a"]')}`.replaceAll('\n', '\r\n')
  expect(await readScriptMetadata(script)).toEqual({ requiresPython: undefined, dependencies: ['a'] })
})

test.each([
  '',
  'import pandas',
  '#/// script\n# dependencies = ["a"]\n# ///',
  'x = "# /// script"',
  '# dependencies = ["a"]',
])('a script without a block has no wishes: %j', async (script) =>
  expect(await readScriptMetadata(script)).toBeUndefined(),
)

test('a closing line within the content belongs to it', async () => {
  const script = block('# dependencies = ["a"]', '# x = """', '# ///', '# """')
  expect(await readScriptMetadata(script)).toEqual({ requiresPython: undefined, dependencies: ['a'] })
})

test.each([
  ['# /// script\n# dependencies = ["a"]\nimport a\n', 'no closing line'],
  [`${block('# dependencies = []')}${block('# dependencies = []')}`, 'it occurs twice'],
  [block('# dependencies = ['), 'not TOML'],
  [block('# dependencies = "a"'), 'a list of strings'],
  [block('# dependencies = [1]'), 'a list of strings'],
  [block('# requires-python = 3'), 'must be a string'],
  [block(`# x = "${'y'.repeat(70_000)}"`), 'more than'],
])('a block that cannot be read is refused with the reason', async (script, why) => {
  await expect(readScriptMetadata(script)).rejects.toMatchObject({
    code: 'dependency_invalid',
    message: expect.stringContaining(why) as string,
  })
})

test('the pattern of PEP 723 takes seconds for such scripts; this scanner reads each line once', async () => {
  const hostile = [
    `# /// script\n${'# x\n'.repeat(60_000)}`,
    '# /// script\n'.repeat(20_000),
    `# /// script\n${'#\n'.repeat(120_000)}# ///`,
  ]
  const stall = await stallDuring(async () => {
    for (const script of hostile) await readScriptMetadata(script).catch(() => undefined)
  })
  expect(stall).toBeLessThan(500)
})
