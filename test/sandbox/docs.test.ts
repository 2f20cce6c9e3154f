import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { requireLocalEngine } from '../support/local-engine.ts'
import { fencesOf, printedBy, textOf, withClaims } from '../support/run-example.ts'

const ROOT = resolve(import.meta.dirname, '../..')

const { skip } = await requireLocalEngine()

test.skipIf(skip)('README calls tools as documented', () => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  const [, example = '', output = ''] = /## Use it\n+```ts\n(.*?)```\n+prints\n+```text\n(.*?)```/s.exec(readme) ?? []
  expect(printedBy(example)).toBe(output)
})

test.skipIf(skip).each(['docs/running.md', 'docs/observability.md'])('%s prints the documented output', (path) => {
  const page = readFileSync(join(ROOT, path), 'utf8')
  const [, example = '', output = ''] = /```ts\n(.*?)```\n+prints\n+```text\n(.*?)```/s.exec(page) ?? []
  expect(printedBy(example)).toBe(output)
})

test.skipIf(skip)('docs/cli-guide.md: the example of --tools prints the documented output', () => {
  const page = readFileSync(join(ROOT, 'docs/cli-guide.md'), 'utf8')
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

test('docs/artifacts.md prints the documented output', () => {
  const fences = fencesOf(readFileSync(join(ROOT, 'docs/artifacts.md'), 'utf8'))
  // With a file of its own, the program runs in its own directory, which has no store yet.
  expect(printedBy(textOf(fences, 'ts'), { 'note.txt': '' })).toBe(textOf(fences, 'text'))
})

test.skipIf(skip)('docs/sessions.md: each value that a comment of the examples names is what the session gives', () => {
  const { program, claims } = withClaims(textOf(fencesOf(readFileSync(join(ROOT, 'docs/sessions.md'), 'utf8')), 'ts'))
  expect({ claims, printed: printedBy(program) }).toEqual({ claims: 6, printed: '' })
})

describe.each(['docs/tools.md', 'docs/checking.md', 'docs/orchestrating.md', 'docs/mission.md', 'docs/code-agent.md'])(
  'the TypeScript of %s is a program',
  (page) => {
    test.skipIf(skip)('that prints the documented output', () => {
      const text = readFileSync(join(ROOT, page), 'utf8')
      const fences = fencesOf(text)
      expect(printedBy(textOf(fences, 'ts'))).toBe(textOf(fences, 'text'))
    })
  },
)
