import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { ChartFrames } from '../../../src/cli/chart-frames.ts'
import { displayHtml } from '../../../src/cli/display-html.ts'

const TABLE = 'application/vnd.sandglass.table+json'
const PLOTLY = 'application/vnd.plotly.v1+json'
const page = (
  data: Readonly<Record<string, string>>,
  leftOut: readonly string[] = [],
  charts: ChartFrames = new ChartFrames(),
): string => displayHtml({ data, leftOut }, charts).toString().replaceAll(/>\s+</g, '><').trim()

test('a picture is an image with its description', () => {
  expect(page({ 'image/png': 'aGk=', 'text/html': '<b>', 'text/plain': 'a "chart"' }, ['image/x<y'])).toBe(
    '<figure><img src="data:image/png;base64,aGk=" alt="a &quot;chart&quot;" />' +
      '<figcaption>a &quot;chart&quot;</figcaption><p class="left-out">left out: image/x&lt;y</p></figure>',
  )
})

test('a drawing is an image, too: no code of it runs', () => {
  const drawing = '<svg><script>x</script></svg>'
  expect(page({ 'image/svg+xml': drawing })).toContain(
    `src="data:image/svg+xml;base64,${Buffer.from(drawing).toString('base64')}"`,
  )
})

test('binary content that is no base64 cannot leave its attribute', () => {
  expect(page({ 'image/png': '"><script>alert(1)</script>' })).not.toContain('<script')
})

test('a table is a table, whatever is in its cells', () => {
  const columns = [{ name: '<n>', type: 'int64', index: true }, { name: 'x' }, null]
  const json = JSON.stringify({ columns, rows: [[1, '</td>'], [null, { a: 1 }, 2], []], row_count: 7 })
  expect(page({ [TABLE]: json, 'text/html': '<b>' })).toBe(
    '<figure><div class="wide"><table class="records"><thead><tr><th>&lt;n&gt;</th><th>x</th><th></th></tr></thead><tbody>' +
      '<tr><th>1</th><td class="words">&lt;/td&gt;</td><td class="words"></td></tr>' +
      '<tr><th></th><td class="words">{&quot;a&quot;:1}</td><td class="number">2</td></tr>' +
      '<tr><th></th><td class="words"></td><td class="words"></td></tr>' +
      '</tbody></table></div><p class="left-out">the first 3 of 7 rows</p></figure>',
  )
})

const NO_LOOK_UPS = '&lt;meta http-equiv=&quot;x-dns-prefetch-control&quot; content=&quot;off&quot;&gt;'

test.each(['', 'null', '5', '{}', '{"columns":[],"rows":[1]}', '{"columns":5,"rows":[]}'])(
  'what is no table, like %j, is shown as its HTML in a frame without scripts',
  (json) => {
    expect(page({ [TABLE]: json, 'text/html': '<p>"</p><script>x</script>' })).toContain(
      `<iframe sandbox="" title="HTML of the script" srcdoc="${NO_LOOK_UPS}&lt;p&gt;&quot;&lt;/p&gt;&lt;script&gt;x&lt;/script&gt;"></iframe>`,
    )
  },
)

test('HTML has no elements with which a browser connects to a host in spite of the policy', () => {
  const link = '<LINK rel="preconnect" href="http://data.example">'
  const frames = `<iFrame srcdoc='&#60;link rel=preconnect>'></iFrame><frameset><frame src="http://data.example">`
  const shown = page({ 'text/html': `${link}${frames}<p>linked` })
  expect(shown).toContain(NO_LOOK_UPS)
  for (const name of ['LINK', 'iFrame', 'frameset', 'frame ']) expect(shown).toContain(`&lt;x-${name}`)
  expect(shown).not.toMatch(/&lt;(?:link|i?frame)/i)
  expect(shown).toContain('&lt;p&gt;linked')
})

test('anything else is text, folded if it is no plain text', () => {
  expect(page({ 'text/plain': 'a < b', 'application/json': '{"a":1}' })).toBe(
    '<figure><pre>a &lt; b</pre><details><summary>application/json</summary><pre>{&quot;a&quot;:1}</pre></details></figure>',
  )
})

/** The document in a frame. */
function documentIn(frame: string): string {
  const [, text = ''] = /srcdoc="([^"]*)"/.exec(frame) ?? []
  return text.replaceAll('&lt;', '<').replaceAll('&quot;', '"').replaceAll('&amp;', '&')
}

test('a figure of plotly is data in a frame of its own, and its height is bounded', () => {
  const charts = new ChartFrames('x("</script>")')
  const title = '</script><script>alert(1)</script>"&é'
  const figure = JSON.stringify({ data: [{ type: 'bar' }], layout: { title, height: 9e9 }, config: { x: 1 } })
  const shown = page({ [PLOTLY]: figure, 'text/plain': 'a <chart>' }, [], charts)
  expect(shown).toContain('sandbox="allow-scripts"')
  expect(shown).toContain('style="height: 1200px"')
  expect(shown).toContain('<figcaption>a &lt;chart&gt;</figcaption>')
  expect(shown).not.toMatch(/<script/)
  const [, json = ''] = /id="figure">([^<]*)<\/script>/.exec(documentIn(shown)) ?? []
  expect(JSON.parse(json)).toEqual({ data: [{ type: 'bar' }], layout: { title, height: 9e9 } })
})

test('plotly.js is on the page once, and the policy lets no other script run', () => {
  const charts = new ChartFrames('x("</script>")\r\n')
  expect(charts.source).toEqual([])
  expect(charts.policy).not.toContain('script-src')
  const figure = '{"data":[]}'
  const frames = [page({ [PLOTLY]: figure }, [], charts), page({ [PLOTLY]: figure }, [], charts)]
  const source = documentIn(charts.source.toString())
  expect(source).toContain('id="drawer">x("<\\/script>")\n</script>')
  for (const text of [...frames.map(documentIn), source]) {
    expect(text).toContain(`content="${charts.policy}"`)
    const run = [...text.matchAll(/<script(?: type="text\/plain" id="drawer")?>([^]*?)<\/script>/g)]
    expect(run).toHaveLength(text === source ? 2 : 1)
    for (const [, script = ''] of run) {
      expect(charts.policy).toContain(`'sha256-${createHash('sha256').update(script).digest('base64')}'`)
    }
  }
  expect(charts.policy.match(/sha256/g)).toHaveLength(3)
  expect(charts.policy).not.toMatch(/unsafe-eval|http|connect|frame-src/)
})

test.each(['', 'null', '5', '{}', '{"data":5}', `{"data":[],"layout":"${'x'.repeat(1024 * 1024)}"}`, '['.repeat(1e5)])(
  'what is no figure, or is too large, is shown as the rest of its display',
  (figure) => {
    const charts = new ChartFrames('x')
    expect(page({ [PLOTLY]: figure, 'text/html': '<b>' }, [], charts)).toMatch(/<iframe sandbox="" title="HTML/)
    expect(charts.source).toEqual([])
  },
)

test('without plotly.js the page says what to install, and shows the rest', () => {
  const shown = page({ [PLOTLY]: '{"data":[]}', 'text/plain': "Plotly figure 'T': 1 bar" })
  expect(shown).toContain('<pre>Plotly figure &#39;T&#39;: 1 bar</pre>')
  expect(shown).toContain('not installed: npm install plotly.js-strict-dist-min</p>')
})
