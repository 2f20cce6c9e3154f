import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { requireDockerEngine } from './docker-engine.ts'
import { errorsDoc } from './errors-doc.ts'
import { requireLocalEngine } from './local-engine.ts'
import { computedWarningCodes, listedWarningCodes, warningCodes } from './warning-codes.ts'

const ROOT = resolve(import.meta.dirname, '..')
const PAGES = [
  ...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
]

test('docs/errors.md is the table of codes (node scripts/errors-doc.ts writes it)', () => {
  expect(readFileSync(join(ROOT, 'docs/errors.md'), 'utf8')).toBe(errorsDoc())
})

test('docs/cli.md lists every code of a warning, and no other', () => {
  expect(listedWarningCodes()).toEqual(warningCodes())
  // These are no literals; test/warning-codes.ts has a way for each to find the codes behind it.
  expect(computedWarningCodes()).toEqual([
    'LATE_ERRORS.get(errorKind) ?? LATE_ERROR',
    'code',
    'code: string',
    'late.code',
    'this.redactor.text(code)',
  ])
})

describe.each(PAGES)('%s', (page) => {
  const text = readFileSync(join(ROOT, page), 'utf8')

  test('links to pages that exist', () => {
    const links = [...text.matchAll(/\]\((?!https?:|#)([^)#\s]+)[^)]*\)/g)].map(([, target = '']) => target)
    expect(links.filter((link) => !existsSync(join(ROOT, dirname(page), link)))).toEqual([])
  })

  test('names files of the tree that exist', () => {
    const names = [...text.matchAll(/`((?:src|test|docs|harness|examples|bench|scripts)\/[\w./-]+)`/g)].map(
      ([, name = '']) => name,
    )
    expect(names.filter((name) => !existsSync(join(ROOT, name)))).toEqual([])
  })

  test('holds nothing that is still to be filled in', () => {
    expect(text).not.toMatch(/@@\w+@@|FIXME/)
  })
})

const { skip } = await requireLocalEngine()
const { skip: noDocker } = await requireDockerEngine()

describe('README', () => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')

  test.skipIf(skip)('prints what it says it prints', () => {
    const [, example = '', output = ''] = /## Use it\n+```ts\n(.*?)```\n+prints\n+```text\n(.*?)```/s.exec(readme) ?? []
    expect(printedBy(example)).toBe(output)
  })

  test.skipIf(skip)('calls tools as it says', () => {
    const [, example = '', output = ''] =
      /### Tools\n.*?```ts\n(.*?)```\n+prints\n+```text\n(.*?)```/s.exec(readme) ?? []
    expect(printedBy(example)).toBe(output)
  })

  test.skipIf(noDocker)('runs a script in a container with the line that it gives', () => {
    const [line = ''] = /^echo .* --engine docker$/m.exec(readme) ?? []
    const program = [process.execPath, join(ROOT, 'src/cli/main.ts')].map((word) => `'${word}'`).join(' ')
    const command = line.replace('| sandglass ', `| ${program} `)
    expect(execFileSync('sh', ['-c', command], { encoding: 'utf8' })).toBe('45\n')
  })
})

test.skipIf(skip)('docs/cli.md: the example of --tools prints what it says', () => {
  const page = readFileSync(join(ROOT, 'docs/cli.md'), 'utf8')
  const [, example = '', output = ''] = /```sh\n(cat > tools\.ts .*?)```\n+prints `([^`]+)`/s.exec(page) ?? []
  const program = [process.execPath, join(ROOT, 'src/cli/main.ts')].map((word) => `'${word}'`).join(' ')
  const commands = example
    .replace("from 'sandglass'", `from '${join(ROOT, 'src/index.ts')}'`)
    .replace('| sandglass ', `| ${program} `)
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-docs-'))
  try {
    const options = { encoding: 'utf8', cwd: directory, stdio: 'pipe' } as const
    expect(execFileSync('sh', ['-c', commands], options)).toBe(`${output}\n`)
  } finally {
    rmSync(directory, { recursive: true })
  }
})

describe.each(['docs/tools.md', 'docs/checking.md', 'docs/orchestrating.md'])(
  'the TypeScript of %s is a program',
  (page) => {
    test.skipIf(skip)('that prints what the page says', () => {
      const text = readFileSync(join(ROOT, page), 'utf8')
      const fences = [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)]
      const of = (wanted: string): string =>
        fences.map(([, kind, content = '']) => (kind === wanted ? content : '')).join('')
      expect(printedBy(of('ts'))).toBe(of('text'))
    })
  },
)

/** What a program of a page prints. It finds packages as a user's own would. */
function printedBy(program: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-docs-'))
  try {
    const file = join(directory, 'example.ts')
    const imported = program.replaceAll(/from '([^'.]+)'/g, (_, name: string) => {
      const target = name === 'sandglass' ? join(ROOT, 'src/index.ts') : import.meta.resolve(name)
      return `from ${JSON.stringify(target)}`
    })
    writeFileSync(file, imported)
    return execFileSync(process.execPath, [file], { encoding: 'utf8', cwd: ROOT })
  } finally {
    rmSync(directory, { recursive: true })
  }
}
