import { expect, test } from 'vitest'
import type { Sandglass, Session } from '../../src/index.ts'

/** Writes frames past the helpers. */
export const RAW = `
import json, os
def raw(**frame):
    line = json.dumps(frame, separators=(",", ":")).encode() + b"\\n"
    while line: line = line[os.write(3, line):]
`
export const SHOWS = `raw(type="display", kind="display", left_out=[], data=`

/** What hostile cells can show: bounded, typed, and nothing that harms their session. @param sandglass gives an open one. */
export function describeHostileDisplays(sandglass: () => Sandglass): void {
  const withSession = async (act: (session: Session) => Promise<void>): Promise<void> => {
    await using session = await sandglass().session({ maxOutputBytes: 65_536 })
    await session.run('x = 1')
    await act(session)
    expect(await session.run('x')).toMatchObject({ state: 'kept', value: 1, displays: [{ kind: 'result' }] })
  }

  test('displays of a gigabyte cost their cell its memory or its output, and its session nothing', () =>
    withSession(async (session) => {
      const large = await session.run(
        'x = 2\ndisplay({"text/html": "x" * (1 << 28), "text/plain": "short"}, raw=True)\nx = 1',
      )
      expect(large).toMatchObject({
        state: 'kept',
        displays: [{ data: { 'text/plain': 'short' }, leftOut: ['text/html'] }],
      })
      const huge = await session.run('x = 2\ndisplay({"text/html": "x" * (1 << 30)}, raw=True)')
      expect(huge).toMatchObject({ status: 'memory-limit', state: 'rolled-back', displays: [] })
      const raw = await session.run(
        `x = 2\n${RAW}os.write(3, b'{"type":"display","data":{"a/b":"')\nfor _ in range(1 << 14): os.write(3, b"x" * 65536)`,
      )
      expect(raw).toMatchObject({ status: 'output-limit', state: 'rolled-back', displays: [] })
    }))

  test('displays of a hundred thousand figures are left out but for the first hundred', () =>
    withSession(async (session) => {
      const cell = await session.run(
        'import base64\nclass Figure:\n    def _repr_png_(self): return bytes(1000)\nfor n in range(100_000): display(Figure())\nn',
        { timeoutSec: 60 },
      )
      expect(cell).toMatchObject({
        status: 'step-done',
        state: 'kept',
        value: 99_999,
        warnings: [{ code: 'displays_left_out' }],
      })
      expect(cell.displays).toHaveLength(100)
    }))

  test('displays whose methods give wrong types, raise or never end, show what there is', () =>
    withSession(async (session) => {
      const wrong = [
        '_repr_html_ = 5',
        'def _repr_html_(self): return 5',
        'def _repr_html_(self): raise RuntimeError',
        'def _repr_png_(self): return "no base64!"',
        'def _repr_png_(self): return ["a"]',
        'def _repr_mimebundle_(self, **_): return 5',
        'def _repr_mimebundle_(self, **_): return {5: 6, "text/html": {}, "image/png": object(), "a" * 10_000: "x", "b/c": float("nan")}',
        'def _repr_mimebundle_(self, **_): return {"application/json": (lambda x: x.append(x) or x)([])}',
        'def __getattr__(self, name): raise RuntimeError(name)',
        'def __repr__(self): return 5',
      ]
      for (const body of wrong) {
        const cell = await session.run(`class Wrong:\n    ${body}\ndisplay(Wrong())\nWrong()`)
        const { state, status, displays } = cell
        expect({ body, state, status }).toEqual({ body, state: 'kept', status: 'step-done' })
        for (const { data } of displays) {
          for (const [type, content] of Object.entries(data))
            expect([type, typeof content]).toEqual([expect.stringMatching(/^[\w.+-]+\/[\w.+-]+$/), 'string'])
        }
      }
      const lying = await session.run('class Lying: __class__ = property(lambda self: 1 / 0)\nLying()')
      expect(lying).toMatchObject({ state: 'kept', error: 'ZeroDivisionError: division by zero' })
      const endless = await session.run(
        'x = 2\nclass Endless:\n    def _repr_html_(self):\n        while True: pass\nEndless()',
        { timeoutSec: 0.5 },
      )
      expect(endless).toMatchObject({ status: 'timed-out', state: 'rolled-back' })
      const frames = await session.run(
        `${RAW}${SHOWS}{"text": "x"})\n${SHOWS}{"text/html": 1})\n${SHOWS}[])\n${SHOWS}{"image/png": "no!"})\nx = 1`,
      )
      expect(frames).toMatchObject({ state: 'kept', displays: [{ data: {}, leftOut: ['image/png'] }] })
    }))

  test('displays of hostile HTML are data like any other', () =>
    withSession(async (session) => {
      const html =
        '<script>fetch("//evil")</script><img src=x onerror=alert(1)><iframe srcdoc="&lt;script&gt;">\u2028</div></body>'
      const cell = await session.run('display({"text/html": html, "text/plain": html}, raw=True)', { inputs: { html } })
      expect(cell).toMatchObject({ state: 'kept', displays: [{ data: { 'text/html': html, 'text/plain': html } }] })
    }))
}
