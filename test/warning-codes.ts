import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '..')
/** Where codes of warnings are written, and how. */
const PLACES: readonly { readonly folder: string; readonly suffix: string; readonly code: RegExp }[] = [
  { folder: 'src/executor', suffix: '.ts', code: /\bwarn\(\s*'(\w+)'/g },
  // Fates and late errors are warnings when something else decided; what has a line is a violation.
  { folder: 'src/executor', suffix: '.ts', code: /\bcode: '(\w+)'(?!,\s*line\b)/g },
  { folder: 'src/executor', suffix: '.ts', code: /\blost\(.*, '(\w+)'\)/g },
  { folder: 'src/executor', suffix: 'gathered.ts', code: /\['\w+', '(\w+)'\]/g },
  { folder: 'src/executor', suffix: 'gathered.ts', code: /\bLATE_ERROR = '(\w+)'/g },
  { folder: 'src/cli', suffix: '.ts', code: /\bcode: '(\w+)', message, traceback\b/g },
  // What stands in an error is one of a tool call.
  {
    folder: 'harness/sandglass_harness',
    suffix: '.py',
    code: /(?<!\berror"?\s*[:=]\s*\{)"code": "(\w+)"/g,
  },
]

/** Every code that the sources give a warning, found by the ways in which they write one. */
export function warningCodes(): string[] {
  const codes = PLACES.flatMap(({ folder, suffix, code }) =>
    sources(folder, suffix).flatMap((text) => [...text.matchAll(code)].map(([, found = '']) => found)),
  )
  return [...new Set(codes)].toSorted()
}

/** What stands in place of a code where it is no literal: {@link warningCodes} has to find these another way. */
export function computedWarningCodes(): string[] {
  return sources('src/executor', '.ts')
    .flatMap((text) => [...text.matchAll(/\bwarn\(\s*([^'\s][^,]*),/g)].map(([, found = '']) => found))
    .toSorted()
}

/** The codes that docs/cli.md lists. */
export function listedWarningCodes(): string[] {
  const page = readFileSync(join(ROOT, 'docs/cli.md'), 'utf8')
  const [, section = ''] = /\n### Warnings\n(.*?)\n### /s.exec(page) ?? []
  const cells = [...section.matchAll(/^\|([^|]*)\|/gm)].map(([, cell = '']) => cell)
  return cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, code = '']) => code)).toSorted()
}

function sources(folder: string, suffix: string): string[] {
  return readdirSync(join(ROOT, folder))
    .filter((name) => name.endsWith(suffix))
    .map((name) => readFileSync(join(ROOT, folder, name), 'utf8'))
}
