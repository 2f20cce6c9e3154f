import { describe, expect, test } from 'vitest'
import { createSandglass, type Sandglass } from '../../src/index.ts'
import { RAW, SHOWS } from '../support/hostile-displays.ts'
import { requireLocalEngine } from '../support/local-engine.ts'

const { skip } = await requireLocalEngine()

describe.each(['local', 'pyodide'] as const)('displays of a hostile script on %s', (engine) => {
  const withSandglass = async (act: (sg: Sandglass) => Promise<void>): Promise<void> => {
    await using sg = await createSandglass({ engine, poolSize: 1, limits: { maxOutputBytes: 65_536 } })
    await act(sg)
  }

  test.skipIf(engine === 'local' && skip)(
    'are bounded, and count for nothing else',
    async () => {
      await withSandglass(async (sg) => {
        const many = await sg.run(`${RAW}for n in range(150): ${SHOWS}{"text/plain": str(n)})\nemit_result(1)`)
        expect(many).toMatchObject({ status: 'completed', finalData: 1, ignoredFrames: 0 })
        expect(many.displays.map(({ data }) => data['text/plain'])).toEqual(
          Array.from({ length: 100 }, (_, n) => `${n}`),
        )
        expect(many.warnings).toMatchObject([{ code: 'displays_left_out' }])

        const junk = await sg.run(
          `${RAW}${SHOWS}{"text": "x"})\n${SHOWS}{"text/html": 1})\n${SHOWS}{})\n${SHOWS}{"image/png": "no!"})\nemit_result(1)`,
        )
        expect(junk).toMatchObject({ status: 'completed', displays: [{ data: {}, leftOut: ['image/png'] }] })

        const large = await sg.run(`${RAW}for n in range(9): ${SHOWS}{"text/html": "x" * (3 << 20)})\nemit_result(1)`)
        expect(large.displays).toHaveLength(5)

        const endless = await sg.run(
          `${RAW}os.write(3, b'{"type":"display","data":{"a/b":"')\nwhile True: os.write(3, b"x" * 65536)`,
        )
        expect(endless.status).toBe('output-limit')
        const flood = await sg.run(`${RAW}while True: ${SHOWS}{"text/plain": "x"})`)
        expect(flood.status).toBe('output-limit')
        expect(flood.displays).toHaveLength(100)
        expect((await sg.run('display(1)\nemit_result(1)')).displays).toHaveLength(1)
      })
    },
    60_000,
  )

  test.skipIf(engine === 'local' && skip)(
    'say what was left out, also if nothing is left',
    () =>
      withSandglass(async (sg) => {
        const { displays, ignoredFrames } = await sg.run(
          `loop = {}
loop['a'] = loop
display({'application/json': loop}, raw=True)
display({'text/html': '<b>x</b>', 'bad type': 'y', 'x' * 1000: 'z'}, raw=True)
display({'text/markdown': '\\0' * (3 << 20)}, raw=True)
${RAW}raw(type="display", kind="display", left_out=["'" + "x" * 100], data={"text/plain": "x"})
raw(type="display", kind="display", left_out=["'\u00e9'"], data={"text/plain": "x"})`,
        )
        expect(ignoredFrames).toBe(0)
        expect(displays.map(({ data, leftOut }) => ({ data, leftOut }))).toEqual([
          {
            data: { 'text/plain': '<display without content; left out: application/json>' },
            leftOut: ['application/json'],
          },
          { data: { 'text/html': '<b>x</b>' }, leftOut: ["'bad type'", `'${'x'.repeat(99)}`] },
          { data: { 'text/plain': '<display without content; left out: text/markdown>' }, leftOut: ['text/markdown'] },
        ])
      }),
    60_000,
  )
})
