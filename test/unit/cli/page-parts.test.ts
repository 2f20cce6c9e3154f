import { describe, expect, test } from 'vitest'
import { dataHtml } from '../../../src/cli/data-html.ts'
import { html, type Html } from '../../../src/cli/html.ts'
import { pythonHtml } from '../../../src/cli/python-html.ts'

/** Removes the spaces between tags, which depend on the formatter of this project. */
function compact(piece: Html): string {
  return piece.toString().replaceAll(/>\s+</g, '><').trim()
}

describe('data on the page of a run', () => {
  test('a list of records is a table: its keys in order, gaps empty, numbers on the right', () => {
    const rows = [
      { id: 'A-1', total: 12.5, tags: ['x'] },
      { id: '<b>', total: null, late: true },
    ]
    expect(compact(dataHtml(rows, 1000))).toBe(
      '<div class="wide"><table class="records"><thead><tr><th class="words">id</th><th class="number">total</th>' +
        '<th class="words">tags</th><th class="words">late</th></tr></thead><tbody>' +
        '<tr><td class="words">A-1</td><td class="number">12.5</td><td class="words">[&quot;x&quot;]</td><td class="words"></td></tr>' +
        '<tr><td class="words">&lt;b&gt;</td><td class="number">null</td><td class="words"></td><td class="words">true</td></tr>' +
        '</tbody></table></div>',
    )
  })

  test('so is one in an object, under its name', () => {
    const page = compact(dataHtml({ orders: [{ id: 1 }], sum: 2 }, 1000))
    expect(page).toMatch(/^<h4>orders<\/h4><div class="wide"><table .*<\/div><h4>sum<\/h4><pre>2<\/pre>$/)
  })

  test.each<[string, unknown]>([
    ['a text', 'a < b'],
    ['a list of numbers', [1]],
    ['an empty list', []],
    ['a list of empty objects', [{}]],
    ['a list of records with nothing in common', [{ a: 1 }, { b: 1 }, { c: 1 }]],
    ['a list with more columns than fit', [Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`k${n}`, n]))]],
  ])('%s is not', (_what, data) => {
    const text = typeof data === 'string' ? data : JSON.stringify(data, null, 2)
    expect(dataHtml(data, 1000).toString()).toBe(html`<pre>${text}</pre>`.toString())
  })

  test('a table is cut, and gives the number of omitted rows', () => {
    const page = dataHtml(
      Array.from({ length: 5000 }, () => ({ text: 'x'.repeat(10_000) })),
      1000,
    ).toString()
    expect(page.match(/<tr>/g)).toHaveLength(1 + 5)
    expect(page).toContain(`${'x'.repeat(200)}… (9,800 more characters)`)
    expect(page).toContain('… 4,995 more (--json has all)')
  })

  test('names of objects are plain keys in it', () => {
    const data: unknown = JSON.parse('[{"__proto__":1,"constructor":2},{"toString":3,"__proto__":4}]')
    expect(dataHtml(data, 1000).toString()).not.toContain('native code')
  })
})

describe('Python on the page of a run', () => {
  const plain = (lines: readonly Html[]): string[] => lines.map((line) => line.toString().replaceAll(/<[^>]*>/g, ''))

  test('has coloured keywords, strings, numbers, comments and names, line by line', () => {
    const lines = ['def late(n=3):  # why', '    """Of <two>', '    lines"""', '    return not f"{n}"']
    expect(pythonHtml(lines).map(String)).toEqual([
      '<span class="py-word">def</span> <span class="py-name">late</span>(n=<span class="py-number">3</span>):  <span class="py-comment"># why</span>',
      '    <span class="py-text">&quot;&quot;&quot;Of &lt;two&gt;</span>',
      '<span class="py-text">    lines&quot;&quot;&quot;</span>',
      '    <span class="py-word">return</span> <span class="py-word">not</span> <span class="py-text">f&quot;</span>{n}<span class="py-text">&quot;</span>',
    ])
  })

  test.each([[['']], [['', '']], [['x = (', '', '"""']], [['\u0000', '$?!`', 'caf\u00e9 = "\u{1F600}"', '\tif x:']]])(
    '%j keeps its lines',
    (lines) => {
      expect(plain(pythonHtml(lines))).toEqual(
        lines.map((line) => line.replace('\u0000', '\\x00').replaceAll('"', '&quot;').replaceAll('`', '&#96;')),
      )
    },
  )

  test('stays plain if highlighting takes too long', () => {
    const lines = ['if x:', '    pass']
    expect([pythonHtml(lines, 0).map(String), plain(pythonHtml(lines))]).toEqual([lines, lines])
    expect(pythonHtml(lines).map(String)).not.toEqual(lines)
  })
})
