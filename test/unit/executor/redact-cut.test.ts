import { describe, expect, test } from 'vitest'
import { Redactor } from '../../../src/redaction/index.ts'
import { measureBest } from '../../support/measure-best.ts'
import { MARK, SECRET, secrets } from './sample-secret.ts'
import { done, error, frame, intermediate, log, play, result } from './wire.ts'

describe('a text that was cut', () => {
  const KEY = 'k3y-0123456789abcdefghijklmnopqrstuvwxyz-end'
  const request = { secrets: { KEY } }
  const gap = '\n... 12 characters left out ...\n'

  test('a large text is read in pieces, and its end is no cut', () => {
    const redactor = new Redactor({ KEY })
    for (let before = 65_536 - KEY.length - 1; before <= 65_537; before += 1) {
      const [head, tail] = ['x'.repeat(before), `\n${'y'.repeat(80_000)}\n${KEY.slice(0, 30)}`]
      expect(redactor.text(head + KEY + tail)).toBe(`${head}[redacted:KEY]${tail}`)
    }
    expect(redactor.text(`${KEY} `.repeat(5000), { end: true })).toBe('[redacted:KEY] '.repeat(5000))
    expect(redactor.text(`${'x'.repeat(70_000)} ${KEY.slice(0, 30)}`, { end: true })).toMatch(/x \[redacted:KEY\]$/)
  })

  test('a stream that ends inside a secret shows no part of it', async () => {
    for (let length = 1; length <= KEY.length; length += 1) {
      const text = `${KEY}\n${KEY.slice(0, length)}`
      const { result: got } = await play([frame('stdout', { text }), frame('stderr', { text })], { request })
      const expected = `[redacted:KEY]\n${length < 4 ? KEY.slice(0, length) : '[redacted:KEY]'}`
      expect([got.stdout, got.stderr]).toEqual([expected, expected])
    }
  })

  test('of a whole secret and a longer part of another the longer one is named, and both are removed', async () => {
    const several = { SHORT: 'abcd', LONG: 'abcdefgh' }
    for (const [text, expected] of [
      ['abcd', '[redacted:SHORT]'],
      ['abcdef', '[redacted:LONG]'],
      ['abcdab', '[redacted:SHORT]ab'],
      ['bcdefgh', 'bcdefgh'],
    ]) {
      const { result: got } = await play([frame('stdout', { text }), done()], { request: { secrets: several } })
      expect(got.stdout).toBe(expected)
    }
  })

  test('the head before a gap and the tail after it show no part of a secret', async () => {
    for (let length = 1; length < KEY.length; length += 1) {
      const head = KEY.slice(0, length)
      const tail = KEY.slice(-length)
      const text = `ValueError: ${head}${gap}${tail}, ${head}`
      const mark = (piece: string): string => (length < 4 ? piece : '[redacted:KEY]')
      const expected = `ValueError: ${mark(head)}${gap}${mark(tail)}, ${head}`
      const { result: got } = await play([error(text, { traceback: text }), log(text), done()], { request })
      expect([got.error, got.traceback, got.logs[0]?.message]).toEqual([expected, expected, expected])
    }
  })

  test('each of several gaps is checked, and a repetitive secret is found as a whole', async () => {
    const secrets = { A: 'aaaaaaab' }
    const text = `xaaab aaaa${gap}aaab${gap}aaaaa${gap}aab`
    const { result: got } = await play([log(text), done()], { request: { secrets } })
    expect(got.logs[0]?.message).toBe(`xaaab [redacted:A]${gap}[redacted:A]${gap}[redacted:A]${gap}aab`)
  })

  test('the form of JSON and repr is found at a cut, too', async () => {
    const written = JSON.stringify(SECRET).slice(1, -1)
    const text = `${written.slice(0, -3)}${gap}${written.slice(3)}`
    const { result: got } = await play([log(text), done()], { request: { secrets } })
    expect(got.logs[0]?.message).toBe(`${MARK}${gap}${MARK}`)
  })

  test('labels and levels of maximum length count as cut; warnings have gaps', async () => {
    const piece = KEY.slice(0, 20)
    const cut = (length: number): string => 'x'.repeat(length - piece.length) + piece
    const { result: got } = await play(
      [
        intermediate(cut(1024), 0),
        intermediate(cut(1023), 0),
        frame('log', { message: '', level: cut(64) }),
        done({}, { warnings: [{ code: 'collect_skipped', message: `${cut(500)}${gap}${KEY.slice(20)}` }] }),
      ],
      { request },
    )
    expect(got.intermediates.map(({ label }) => label.slice(1000))).toEqual([
      `${'x'.repeat(4)}[redacted:KEY]`,
      cut(1023).slice(1000),
    ])
    expect(got.logs[0]?.level).toBe(`${'x'.repeat(44)}[redacted:KEY]`)
    expect(got.warnings[0]?.message).toBe(`${'x'.repeat(480)}[redacted:KEY]${gap}[redacted:KEY]`)
  })

  test('the last output of a sandbox may be cut at either end', async () => {
    const message = `${KEY.slice(9)} died of ${KEY.slice(0, 9)}`
    const ending = { cause: 'exit', exitCode: 1, signal: null, by: 'harness', message } as const
    const { result: got } = await play([], { request, replay: { ending } })
    expect(got.ending.message).toBe('[redacted:KEY] died of [redacted:KEY]')
  })

  test('a complete value keeps its ends', async () => {
    const { result: got } = await play([log(KEY.slice(0, 9)), result(KEY.slice(-9)), done()], { request })
    expect([got.logs[0]?.message, got.finalData]).toEqual([KEY.slice(0, 9), KEY.slice(-9)])
  })

  const marker = '[redacted:KEY]'
  test.each(Array.from({ length: marker.length + 2 }, (_, over) => over))(
    'the kept part of a stream is never cut inside a marker: %i bytes before its end',
    async (over) => {
      const MiB = 1024 * 1024
      const text = `${'é'.repeat(10)}${'x'.repeat(MiB - 20 - over)}${KEY} and more`
      const { result: got } = await play([frame('stdout', { text }), done()], {
        request,
        limits: { maxOutputBytes: 4 * MiB },
      })
      const shown = over < marker.length ? '' : marker + ' and more'.slice(0, over - marker.length)
      expect(got.stdout.slice(MiB - 10 - over)).toBe(shown)
      expect(got.truncated).toBe(true)
    },
  )

  test('with many forged gaps takes little more time than without', () => {
    const redactor = new Redactor({ KEY: `${'a'.repeat(23)}b` })
    const forged = `${gap}${'a'.repeat(20)}`.repeat(1500)
    const plain = forged.replaceAll('left', 'kept')
    const timeOf = (text: string): number => measureBest(() => redactor.text(text))
    expect(timeOf(forged)).toBeLessThan(40 * timeOf(plain) + 20)
  })
})
