import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { openPage, requireChromium, sizeOfPng, textOf } from '../../support/browser.ts'
import { openFrames } from '../../support/browser-frames.ts'
import { makeCli } from '../../support/cli/sandglass.ts'
import { solveInVain } from './solve-modules.ts'
import type { JournalBody } from '../../../src/journal/index.ts'
import { FIRST, HOSTILE, hostileRun, storeRun } from '../../support/cli/stored-runs.ts'

const { skip } = await requireLocalEngine()
const chromium = requireChromium()
const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

/** A dot. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** The escaped form of {@link HOSTILE}. */
const SHOWN = HOSTILE.replaceAll('\u001B', '\\x1b').replaceAll('\u0007', '\\x07').replaceAll('\u202E', '\\u202e')

describe.skipIf(chromium === undefined)('the page of sandglass show --html, in a browser', () => {
  test.skipIf(skip)('shows a failed run with the failing line marked (OR-06)', async () => {
    const env = { XDG_STATE_HOME: join(cli.directory, 'kept') }
    await solveInVain(cli, 'Add up late orders', 1, env)
    const file = join(cli.directory, 'page.html')
    const shown = await cli.run(['show', '--html', 'last', '--out', file], { env })
    expect(shown).toEqual({ code: 0, stdout: '', stderr: `sandglass: wrote ${file}\n` })
    const { dom, picture, window } = await openPage(chromium ?? '', file)
    keepPicture('failed', picture)
    expect(sizeOfPng(picture)).toEqual(window)
    const text = textOf(dom)
    for (const visible of [
      'Add up late orders',
      'retries-spent',
      'Where the time went',
      "^ search() has no parameter 'state'",
      "hint: search() takes status. Write status='late' in place of state='late'.",
      'customer(id="A-1")',
      'not_found: no customer of A-1',
      'nobody: no customer of A-1',
      "KeyError: 'price'",
      'network none',
    ]) {
      expect(text).toContain(visible)
    }
    const uncoloured = dom.replaceAll(/<span class="py-\w+">([^<]*)<\/span>/g, '$1')
    expect(uncoloured.match(/<div class="line failed"><i>(\d+)<\/i><code>([^<]*)<\/code>/g)).toEqual([
      '<div class="line failed"><i>1</i><code>orders = search(state="late")</code>',
      '<div class="line failed"><i>6</i><code>total = orders[0]["price"]</code>',
    ])
  })

  test('shows hostile texts literally, executes nothing and loads nothing', async () => {
    const place = storeRun(join(cli.directory, 'hostile'), FIRST, hostileRun())
    const { code, stdout } = await cli.run(['show', 'last', '--html', '--journal', place])
    expect(code).toBe(0)
    const file = cli.file('hostile.html', stdout)
    const { dom, picture, window } = await openPage(chromium ?? '', file)
    keepPicture('hostile', picture)
    expect(sizeOfPng(picture)).toEqual(window)
    expect(dom).toMatch(/<title>retries-spent: &lt;\/script&gt;/)
    expect(dom.match(/<(script|img|iframe|link|object|base|form|a)\b/g)).toBeNull()
    expect(dom.match(/<[^>]*\s(on\w+|src|href|srcset)=/g)).toBeNull()
    expect(dom.match(/<style\b/g)).toHaveLength(1)
    // In each place with foreign text; names are cut.
    expect(textOf(dom).split(SHOWN).length - 1).toBeGreaterThan(14)
    expect(textOf(dom).split(SHOWN.slice(0, 80)).length - 1).toBeGreaterThan(25)
  })

  test('shows a picture, a table and harmless HTML as what they are', async () => {
    const rows = [
      ['x', 1, 'a'],
      ['y', 2, null],
    ]
    const columns = [
      { name: 'key', type: 'str', index: true },
      { name: 'n', type: 'int64' },
      { name: 'word', type: 'str' },
    ]
    const table = JSON.stringify({ columns, rows, row_count: 2, column_count: 3 })
    const events = hostileRun()
    events.splice(
      -2,
      0,
      displayEvent({ 'image/png': PNG, 'text/plain': 'a dot' }),
      displayEvent({
        'application/vnd.sandglass.table+json': table,
        'text/html': '<table></table>',
        'text/plain': 'key n word',
      }),
      displayEvent({
        'text/html': '<h1 style="color: rgb(1, 2, 3)">said</h1><p>by the script</p>',
        'text/plain': 'said',
      }),
    )
    const place = storeRun(join(cli.directory, 'shown'), FIRST, events)
    const { code, stdout } = await cli.run(['show', 'last', '--html', '--journal', place])
    expect(code).toBe(0)
    await using page = await openFrames(chromium ?? '', cli.file('shown.html', stdout), { height: 3200 })
    const look = `(() => {
      const texts = (selector) => [...document.querySelectorAll(selector)].map((one) => one.textContent)
      const [picture, ...others] = document.querySelectorAll('figure img')
      const { complete, naturalWidth, naturalHeight, alt } = picture
      return {
        picture: { complete, naturalWidth, naturalHeight, alt }, others: others.length,
        columns: texts('figure .records thead th'), cells: texts('figure .records tbody :is(th, td)'), captions: texts('figcaption'),
      }
    })()`
    expect(await page.evaluateInPage(look)).toEqual({
      picture: { complete: true, naturalWidth: 1, naturalHeight: 1, alt: 'a dot' },
      others: 0,
      columns: ['key', 'n', 'word'],
      cells: ['x', '1', 'a', 'y', '2', ''],
      captions: ['a dot', 'said'],
    })
    const heading = "document.querySelector('h1')"
    const shown = `[document.body.innerText, getComputedStyle(${heading}).color]`
    expect(await page.evaluate(shown, `${heading} !== null`)).toEqual([['said\n\nby the script', 'rgb(1, 2, 3)']])
    keepPicture('shown', await page.picture())
  })

  test('draws figures of plotly, also with WebGL, and nothing of them leaves their frames', async () => {
    let requests = 0
    const server = createServer((_, response) => {
      requests += 1
      response.end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const title = `<b>bold</b> <a href="${address}" target="_top">link</a> ${HOSTILE}`
    const images = [{ source: `${address}a.png`, x: 0, y: 0, sizex: 1, sizey: 1 }]
    const figures = [
      {
        data: [{ type: 'bar', x: ['a', 'b'], y: [1, 2], text: [title, title] }],
        layout: { title: { text: title }, images },
      },
      { data: [{ type: 'scattergl', mode: 'markers', x: [1, 2], y: [1, 4] }], layout: { title: { text: 'WebGL' } } },
      { data: [{ type: 'scattergeo', lon: [1], lat: [2] }], layout: { title: { text: 'a map' } } },
    ]
    const events = hostileRun()
    const shown = figures.map((figure) => JSON.stringify(figure))
    events.splice(
      -2,
      0,
      displayEvent({ 'text/html': `<meta http-equiv="refresh" content="0; url=${address}">` }),
      ...shown.map((figure) => displayEvent({ 'application/vnd.plotly.v1+json': figure, 'text/plain': 'a chart' })),
    )
    const place = storeRun(join(cli.directory, 'charts'), FIRST, events)
    const { code, stdout } = await cli.run(['show', 'last', '--html', '--journal', place])
    expect(code).toBe(0)
    await using page = await openFrames(chromium ?? '', cli.file('charts.html', stdout), { height: 6000 })
    const titles = await page.evaluate(
      `new Promise((resolve) => {
      const chart = document.getElementById('chart')
      const look = () => {
        const title = document.querySelector('.gtitle')?.textContent
        const isDrawn = document.querySelectorAll('.bars .point, .gl-container canvas').length > 0 && title !== undefined
        const isRefused = chart.textContent.startsWith('This chart cannot be drawn')
        if (isDrawn || isRefused) resolve(isDrawn ? title : 'refused')
      }
      new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true })
      look()
    })`,
      HAS_CHART,
    )
    expect(titles.map(String).toSorted((a, b) => a.localeCompare(b))).toEqual([
      expect.stringContaining('bold link </script><script>'),
      'refused',
      'WebGL',
    ])
    expect(
      await page.evaluate(
        `Promise.all([
        fetch('${address}').then(() => 'fetched', () => 'refused'),
        new Promise((resolve) => { const i = new Image(); i.onload = i.onerror = (e) => resolve(e.type); i.src = '${address}' }),
        Promise.resolve().then(() => top.document.title).catch((error) => error.name),
        Promise.resolve().then(() => eval('1')).catch((error) => error.name),
        (() => {
          const script = document.createElement('script')
          script.textContent = 'window.ran = true'
          document.head.append(script)
          return window.ran === true
        })(),
      ])`,
        HAS_CHART,
      ),
    ).toEqual(titles.map(() => ['refused', 'error', 'SecurityError', 'EvalError', false]))
    keepPicture('charts', await page.picture())
    expect(requests).toBe(0)
    server.close()
  })
})

const HAS_CHART = `document.getElementById('chart') !== null`

function displayEvent(data: Readonly<Record<string, string>>): JournalBody {
  return { type: 'display', step: null, attempt: 1, data, left_out: [] }
}

/** Saves a picture of the page if SANDGLASS_KEEP_PICTURES names a directory. */
function keepPicture(name: string, picture: Buffer): void {
  const directory = process.env['SANDGLASS_KEEP_PICTURES']
  if (directory !== undefined) writeFileSync(join(directory, `${name}.png`), picture)
}
