import { mkdirSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { lastLine, makeCli } from '../../support/cli/sandglass.ts'

const { skip } = await requireLocalEngine()
const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

const SCRIPT = `
class Picture:
    def __init__(self, data): self.data = data
    def _repr_png_(self): return self.data
    def __repr__(self): return "a\\x1b[31m picture"
print("before")
display(Picture(b"\\x89PNG one"), [1, 2])
display({"image/svg+xml": "<svg/>"}, raw=True)
emit_result({"chart": Picture(b"\\x89PNG two")})
`

describe.skipIf(skip)('what a script shows, at the command line', () => {
  test('is text for a person, and --save writes the pictures', async () => {
    const { code, stdout, stderr } = await cli.run(['run', '-', '--save', join(cli.directory, 'shown')], {
      input: SCRIPT,
    })
    expect(code).toBe(0)
    expect(stdout).toBe(`before
${JSON.stringify({ chart: { display: 3, text: 'a\u001B[31m picture' } }, null, 2)}
`)
    expect(stderr).toBe(`[display] a\\x1b[31m picture
[display] [1, 2]
[display] [image/svg+xml]
[display] a\\x1b[31m picture
`)
    const shown = join(cli.directory, 'shown')
    expect(readdirSync(shown).toSorted()).toEqual(['display-1.png', 'display-3.svg', 'display-4.png'])
    expect(readFileSync(join(shown, 'display-4.png'), 'latin1')).toBe('\x89PNG two')
  })

  test('is in the result line, and replaces no file', async () => {
    mkdirSync(join(cli.directory, 'taken'))
    const first = await cli.run(['run', '-', '--json', '--save', join(cli.directory, 'taken')], {
      input: 'display(1)\nemit_result(1)',
    })
    expect(lastLine(first)).toMatchObject({
      displays: [{ kind: 'display', data: { 'text/plain': '1' }, left_out: [], after: { stdout: 0 } }],
    })
    expect(readdirSync(join(cli.directory, 'taken'))).toEqual([])
    const twice = ['run', '-', '--json', '--events', '--save', join(cli.directory, 'taken')]
    expect((await cli.run(twice, { input: SCRIPT })).code).toBe(0)
    const again = await cli.run(twice, { input: SCRIPT })
    expect(again.code).toBe(2)
    expect(lastLine(again)).toMatchObject({
      warnings: [{ code: 'not_saved', message: expect.stringContaining('"display-1.png"') as string }],
    })
    expect(again.stdout).toContain('"type":"display"')
  })
})
