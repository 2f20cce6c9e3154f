import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { GENERATED } from '../../scripts/docs/generated.ts'
import { withGenerated } from '../../scripts/docs/section.ts'
import { markdownTable } from '../../scripts/docs/table.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const PAGES = [
  ...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
]

// Not in the tests: one section reads all sources, and one runs Python.
const SECTIONS = GENERATED.map((section) => {
  const text = section.text()
  return { ...section, text: () => text }
})

describe('generated sections (`npm run docs` writes them)', () => {
  test.each(SECTIONS)('$page has the section $name as generated from its table', (section) => {
    const page = readPage(section.page)
    expect(page).toBe(withGenerated(page, section))
  })

  test('every generated section of a page has a row, and only that page has it', () => {
    const marked = PAGES.flatMap((page) =>
      [...readPage(page).matchAll(/^<!-- generated: (.+) -->$/gm)].map(([, name = '']) => `${page} ${name}`),
    )
    expect(marked.toSorted()).toEqual(GENERATED.map(({ page, name }) => `${page} ${name}`).toSorted())
  })

  test('a cell of a table may contain bars and line breaks', () => {
    expect(markdownTable(['type', 'says'], [["'a' | 'b'", 'one\n  two']])).toBe(
      "| type | says |\n|---|---|\n| 'a' \\| 'b' | one two |",
    )
  })
})

describe.each(PAGES)('%s', (page) => {
  const text = readPage(page)

  test('links to pages that exist', () => {
    const links = [...text.matchAll(/\]\((?!https?:|#)([^)#\s]+)[^)]*\)/g)].map(([, target = '']) => target)
    expect(links.filter((link) => !existsSync(join(ROOT, dirname(page), link)))).toEqual([])
  })

  test('links to headings that exist', () => {
    const links = [...text.matchAll(/\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)/g)]
    const missing = links.filter(([, target = '', anchor = '']) => {
      const path = target === '' ? page : join(dirname(page), target)
      return path.endsWith('.md') && !anchorsOf(readPage(path)).has(anchor)
    })
    expect(missing.map(([link]) => link)).toEqual([])
  })

  test('names files of the tree that exist', () => {
    const names = [...text.matchAll(/`((?:src|test|docs|harness|examples|bench|campaigns|scripts)\/[\w./-]+)`/g)].map(
      ([, name = '']) => name,
    )
    expect(names.filter((name) => !existsSync(join(ROOT, name)))).toEqual([])
  })

  test('has no placeholder', () => {
    expect(text).not.toMatch(/@@\w+@@|FIXME/)
  })
})

test('README has at most 900 words', () => {
  expect(readPage('README.md').trim().split(/\s+/).length).toBeLessThanOrEqual(900)
})

/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(page: string): Set<string> {
  const headings = [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading)
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
        .replaceAll(/\s/g, '-'),
    ),
  )
}

function readPage(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}
