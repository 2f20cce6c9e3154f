import { describe, expect, test } from 'vitest'
import type { RunEvent } from '../../../src/executor/index.ts'
import { Redactor } from '../../../src/redaction/index.ts'
import { MARK, SECRET, secrets } from './sample-secret.ts'
import { done, error, frame, intermediate, log, play, result } from './wire.ts'

test('SEC-006: the result and the events contain only the marker of a secret', async () => {
  const events: RunEvent[] = []
  const { result: got } = await play(
    [
      frame('stdout', { text: `key=${SECRET}\n` }),
      frame('stderr', { text: `key=${SECRET}` }),
      log(`key=${SECRET}`),
      frame('log', { message: 'm', level: SECRET }),
      intermediate(SECRET, SECRET),
      result({ [SECRET]: [{ k: `<${SECRET}>` }], n: 1, nothing: null }),
      error(`late ${SECRET}`, { traceback: `Traceback ${SECRET}` }),
      done({ exit_code: 1 }, { warnings: [{ code: SECRET, message: SECRET }], limits_hit: [SECRET] }),
    ],
    { request: { secrets }, onEvent: (event) => events.push(event) },
  )
  for (const shown of [got, events]) {
    expect(JSON.stringify(shown)).not.toContain('s3cret')
    expect(JSON.stringify(shown)).not.toContain('line2')
  }
  expect(got).toMatchObject({
    stdout: `key=${MARK}\n`,
    stderr: `key=${MARK}`,
    logs: [{ message: `key=${MARK}` }, { level: MARK }],
    intermediates: [{ label: MARK, data: MARK }],
    finalData: { [MARK]: [{ k: `<${MARK}>` }], n: 1, nothing: null },
    warnings: [
      { code: 'error_after_result', message: `late ${MARK}`, traceback: `Traceback ${MARK}` },
      { code: 'harness_warning', message: `${MARK}: ${MARK}` },
    ],
  })
})

test('an error, its traceback and the last output of a sandbox are redacted', async () => {
  const failed = await play([error(SECRET, { traceback: SECRET }), done()], { request: { secrets } })
  expect(failed.result).toMatchObject({ error: MARK, traceback: MARK })
  const ending = { cause: 'exit', exitCode: 1, signal: null, by: 'harness', message: `died of ${SECRET}` } as const
  const lost = await play([], { request: { secrets }, replay: { ending } })
  expect(JSON.stringify(lost.result)).not.toContain('s3cret')
  expect(lost.result.ending.message).toBe(`died of ${MARK}`)
})

test('the form of a secret in JSON and repr is redacted, too', async () => {
  const { result: got } = await play([log(`KeyError: ${JSON.stringify(SECRET)}`), done()], { request: { secrets } })
  expect(got.logs[0]?.message).toBe(`KeyError: "${MARK}"`)
})

describe('values to hide', () => {
  test('are redacted like secrets, and the script does not get them', async () => {
    const request = { secrets, hide: { 'a key': 'k3y-of-a-tool' } }
    const { result: got, sandbox } = await play([log(`${SECRET} k3y-of-a-tool`), done()], { request })
    expect(got.logs[0]?.message).toBe(`${MARK} [redacted:a key]`)
    expect(JSON.stringify(sandbox.sent)).not.toContain('k3y-of-a-tool')
  })

  test('and secrets of one name are both redacted', async () => {
    const request = { secrets: { KEY: 'of-the-script' }, hide: { KEY: 'of-the-host' } }
    const { result: got } = await play([log('of-the-script, of-the-host'), done()], { request })
    expect(got.logs[0]?.message).toBe('[redacted:KEY], [redacted:KEY]')
  })

  test('and secrets of one name that are too short give one warning', async () => {
    const { result: got } = await play([done()], { request: { secrets: { KEY: 'abc' }, hide: { KEY: 'def' } } })
    expect(got.warnings.map(({ code }) => code)).toEqual(['secret_too_short'])
  })
})

describe('a stream', () => {
  const text = `a ${SECRET} b ${SECRET}${SECRET} s3cret-v s3cret-välu`

  test.each([0, 1, 2, 3])(
    'is redacted wherever frames cut a secret, and nothing is lost (each 4th place, from %i)',
    async (first) => {
      // The end may be where the script was killed in the middle of a secret.
      const expected = `a ${MARK} b ${MARK}${MARK} s3cret-v ${MARK}`
      for (let cut = first; cut <= text.length; cut += 4) {
        const pieces = [text.slice(0, cut), text.slice(cut)].map((piece) => frame('stdout', { text: piece }))
        const told: string[] = []
        const { result: got } = await play([...pieces, done()], {
          request: { secrets },
          onEvent: (event) => (event.type === 'stdout' ? told.push(event.text) : undefined),
        })
        expect([got.stdout, told.join('')]).toEqual([expected, expected])
      }
    },
  )

  test('is redacted when it comes in single characters, and its end is reported when the channel closes', async () => {
    const pieces = Array.from(text, (piece) => frame('stderr', { text: piece }))
    const told: string[] = []
    const { result: got } = await play(pieces, {
      request: { secrets },
      onEvent: (event) => (event.type === 'stderr' ? told.push(event.text) : undefined),
    })
    expect(got.stderr).toBe(`a ${MARK} b ${MARK}${MARK} s3cret-v ${MARK}`)
    expect(told.join('')).toBe(got.stderr)
  })

  test('is not delayed when no secret can begin there', async () => {
    const told: string[] = []
    const frames = [frame('stdout', { text: 'ab.' }), log('between'), frame('stdout', { text: 'de\n' }), done()]
    await play(frames, {
      request: { secrets },
      onEvent: (event) => told.push('text' in event ? event.text : event.type),
    })
    expect(told).toEqual(['started', 'ab.', 'log', 'de\n'])
  })
})

describe('several secrets', () => {
  test('the longest wins, and no part of overlapping ones is left', async () => {
    const several = { SHORT: 'abcd', LONG: 'abcdefgh', OVER: 'ghij-klm' }
    const text = 'abcd abcdefgh abcdefghij-klm xabcdx'
    const expected = '[redacted:SHORT] [redacted:LONG] [redacted:LONG] x[redacted:SHORT]x'
    for (let cut = 0; cut <= text.length; cut += 1) {
      const pieces = [text.slice(0, cut), text.slice(cut)].map((piece) => frame('stdout', { text: piece }))
      const { result: got } = await play([...pieces, log(text), done()], { request: { secrets: several } })
      expect([got.stdout, got.logs[0]?.message]).toEqual([expected, expected])
    }
  })

  test('a repeated secret is one marker', async () => {
    const pieces = ['aaa', 'aaaa', 'a b'].map((text) => frame('stdout', { text }))
    const { result: got } = await play([...pieces, done()], { request: { secrets: { A: 'aaaa' } } })
    expect(got.stdout).toBe('[redacted:A] b')
  })

  test('values under 4 characters are not redacted and give a warning', async () => {
    const { result: got } = await play([log('abc'), done()], { request: { secrets: { A: 'abc', B: '' } } })
    expect(got.logs[0]?.message).toBe('abc')
    expect(got.warnings.map(({ code, message }) => [code, message.includes(' A ') ? 'A' : 'B'])).toEqual([
      ['secret_too_short', 'A'],
      ['secret_too_short', 'B'],
    ])
  })
})

test('SEC-009: a secret in a file name is redacted, in its content it is flagged', async () => {
  const content = Buffer.from(`x${SECRET}y`)
  const file = frame('file', {
    path: `out/${SECRET}`,
    size: content.length,
    offset: 0,
    content_base64: content.toString('base64'),
  })
  const { result: got } = await play([file, done()], { request: { secrets, collect: ['out/**'] } })
  expect(got.files.map(({ path }) => path)).toEqual([`out/${MARK}`])
  expect(Buffer.from(got.files[0]?.content ?? []).equals(content)).toBe(true)
  expect(got.warnings.map(({ code, message }) => [code, message])).toEqual([
    ['secret_in_file', `the file out/${MARK} holds the value of a secret; its content is unchanged`],
  ])
})

test('SEC-009: a secret in a file is flagged wherever its pieces are cut', async () => {
  const whole = Buffer.from(`x ${SECRET.replace('t', '\\x74')} y`)
  const piece = (bytes: Buffer, offset: number): ReturnType<typeof frame> =>
    frame('file', { path: 'out/a', size: whole.length, offset, content_base64: bytes.toString('base64') })
  for (let cut = 1; cut < whole.length; cut += 1) {
    const pieces = [piece(whole.subarray(0, cut), 0), piece(whole.subarray(cut), cut)]
    const { result: got } = await play([...pieces, done()], { request: { secrets, collect: ['out/**'] } })
    expect([got.files.length, got.warnings.map(({ code }) => code)]).toEqual([1, ['secret_in_file']])
  }
})

test('SEC-009: a secret anywhere in a path is redacted, also for an incomplete file', async () => {
  const piece = { offset: 0, content_base64: '' }
  const { result: got } = await play(
    [
      frame('file', { path: `out/x-${SECRET}-y/deep`, size: 0, ...piece }),
      frame('file', { path: `out/${SECRET}.txt`, size: 2, offset: 0, content_base64: 'eA==' }),
      done(),
    ],
    { request: { secrets, collect: ['out/**'] } },
  )
  expect(JSON.stringify(got)).not.toContain('s3cret')
  expect(got.files.map(({ path }) => path)).toEqual([`out/x-${MARK}-y/deep`])
  expect(got.warnings.map(({ message }) => message)).toEqual([`only a part of out/${MARK}.txt arrived`])
})

test('without secrets nothing is copied', async () => {
  const seen: unknown[] = []
  const { result: got } = await play([intermediate('a', { deep: [1] }), done()], {
    onIntermediate: ({ data }) => seen.push(data),
  })
  expect(got.intermediates[0]?.data).toBe(seen[0])
})

test('a long text is redacted like a short one, in turns', async () => {
  const redactor = new Redactor({ KEY: 'top-secret-value', OTHER: 'a"b\\c' })
  const long = `${'x'.repeat(1024 * 1024 - 8)}top-secret-value ${'y'.repeat(1024 * 1024 - 20)}a\\"b\\\\c`
  let turns = 0
  const counting = setInterval(() => (turns += 1), 0)
  const safe = await redactor.longText(long)
  clearInterval(counting)
  expect([safe === redactor.text(long), safe.match(/\[redacted:\w+\]/g)]).toEqual([
    true,
    ['[redacted:KEY]', '[redacted:OTHER]'],
  ])
  expect(turns).toBeGreaterThan(0)
  expect(await redactor.longText('x'.repeat(3 * 1024 * 1024))).toHaveLength(3 * 1024 * 1024)
})
