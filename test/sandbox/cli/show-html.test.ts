import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { openPage, requireChromium, sizeOfPng, textOf } from '../../support/browser.ts'
import { makeCli } from '../../support/cli/sandglass.ts'
import { solveInVain } from './solve-modules.ts'
import { FIRST, HOSTILE, hostileRun, storeRun } from '../../support/cli/stored-runs.ts'

const { skip } = await requireLocalEngine()
const chromium = requireChromium()
const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

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
})

/** Saves a picture of the page if SANDGLASS_KEEP_PICTURES names a directory. */
function keepPicture(name: string, picture: Buffer): void {
  const directory = process.env['SANDGLASS_KEEP_PICTURES']
  if (directory !== undefined) writeFileSync(join(directory, `${name}.png`), picture)
}
