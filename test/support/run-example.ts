import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../..')

/** The sources of the entry points that examples import. */
const OWN: Readonly<Record<string, string>> = {
  sandglass: 'src/index.ts',
  'sandglass/artifacts': 'src/artifacts/index.ts',
  'sandglass/code-agent': 'src/code-agent/index.ts',
  'sandglass/testing': 'src/testing/index.ts',
  'sandglass/review': 'src/review.ts',
  'sandglass/workspaces': 'src/workspace-api/index.ts',
}

/** A code fence of a page. */
export interface Fence {
  readonly language: string
  readonly text: string
}

/** The code fences of Markdown, in order. */
export function fencesOf(markdown: string): Fence[] {
  return [...markdown.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', text = '']) => ({ language, text }))
}

/** The joined text of all fences of one language. */
export function textOf(fences: readonly Fence[], language: string): string {
  return fences.map((fence) => (fence.language === language ? fence.text : '')).join('')
}

/**
 * A program of a page in which each comment that is a value (`s.value // 3`) is a claim: it ends with an error where the expression has
 * another value. Other comments stay.
 */
export function withClaims(program: string): { readonly program: string; readonly claims: number } {
  let claims = 0
  const checked = program.replaceAll(
    /^(;?)(\S.*?) \/\/ ((?:['"[{\d]|true$|false$|null$).*)$/gm,
    (_, start: string, actual: string, claim: string) => {
      claims += 1
      return `${start === '' ? ';' : start}checkClaim(${actual}, ${claim})`
    },
  )
  return { program: `import { deepStrictEqual as checkClaim } from 'node:assert/strict'\n${checked}`, claims }
}

/**
 * Runs a program of a page and returns its output. It finds packages as a user's program would.
 * @param files further files in its directory, by name.
 */
export function printedBy(program: string, files: Readonly<Record<string, string>> = {}): string {
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-docs-'))
  try {
    for (const [name, text] of Object.entries({ ...files, 'example.ts': program })) {
      writeFileSync(join(directory, name), withPaths(text))
    }
    return execFileSync(process.execPath, [join(directory, 'example.ts')], {
      encoding: 'utf8',
      // The root is the working directory, so that `npx` finds the development dependencies.
      cwd: Object.keys(files).length === 0 ? ROOT : directory,
      env: { ...process.env, OPENAI_AGENTS_DISABLE_TRACING: '1' },
    })
  } finally {
    rmSync(directory, { recursive: true })
  }
}

function withPaths(program: string): string {
  return program.replaceAll(/from '([^'.][^']*)'/g, (_, name: string) => {
    if (name.startsWith('/')) return `from '${name}'`
    const own = OWN[name]
    const target = own === undefined ? import.meta.resolve(name) : join(ROOT, own)
    return `from ${JSON.stringify(target)}`
  })
}
