import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { Redactor, type RunEvent } from '../../src/executor/index.ts'
import { done, error, frame, intermediate, log, play, result } from './wire.ts'

const SECRET = 's3cret-välue\n"line2"'
const secrets = { TOOL_A_KEY: SECRET }
const MARK = '[redacted:TOOL_A_KEY]'

test('SEC-006: a secret shows nowhere in the result or the events, only its marker', async () => {
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
      { code: MARK, message: MARK },
    ],
  })
})

test('an error, its traceback and the last words of a sandbox are redacted', async () => {
  const failed = await play([error(SECRET, { traceback: SECRET }), done()], { request: { secrets } })
  expect(failed.result).toMatchObject({ error: MARK, traceback: MARK })
  const ending = { cause: 'exit', exitCode: 1, signal: null, by: 'harness', message: `died of ${SECRET}` } as const
  const lost = await play([], { request: { secrets }, replay: { ending } })
  expect(JSON.stringify(lost.result)).not.toContain('s3cret')
  expect(lost.result.ending.message).toBe(`died of ${MARK}`)
})

test('the way JSON and repr write a secret is redacted too', async () => {
  const { result: got } = await play([log(`KeyError: ${JSON.stringify(SECRET)}`), done()], { request: { secrets } })
  expect(got.logs[0]?.message).toBe(`KeyError: "${MARK}"`)
})

describe('a stream', () => {
  const text = `a ${SECRET} b ${SECRET}${SECRET} s3cret-v s3cret-välu`

  test('is redacted wherever frames cut a secret, and nothing is lost', async () => {
    // The end may be where the script was killed in the middle of a secret.
    const expected = `a ${MARK} b ${MARK}${MARK} s3cret-v ${MARK}`
    for (let cut = 0; cut <= text.length; cut += 1) {
      const pieces = [text.slice(0, cut), text.slice(cut)].map((piece) => frame('stdout', { text: piece }))
      const told: string[] = []
      const { result: got } = await play([...pieces, done()], {
        request: { secrets },
        onEvent: (event) => (event.type === 'stdout' ? told.push(event.text) : undefined),
      })
      expect([got.stdout, told.join('')]).toEqual([expected, expected])
    }
  })

  test('is redacted when it comes in single characters, and the end is told when the channel closes', async () => {
    const pieces = Array.from(text, (piece) => frame('stderr', { text: piece }))
    const told: string[] = []
    const { result: got } = await play(pieces, {
      request: { secrets },
      onEvent: (event) => (event.type === 'stderr' ? told.push(event.text) : undefined),
    })
    expect(got.stderr).toBe(`a ${MARK} b ${MARK}${MARK} s3cret-v ${MARK}`)
    expect(told.join('')).toBe(got.stderr)
  })

  test('is not held back when no secret can begin there', async () => {
    const told: string[] = []
    const frames = [frame('stdout', { text: 'ab.' }), log('between'), frame('stdout', { text: 'de\n' }), done()]
    await play(frames, {
      request: { secrets },
      onEvent: (event) => told.push('text' in event ? event.text : event.type),
    })
    expect(told).toEqual(['started', 'ab.', 'log', 'de\n'])
  })
})

describe('a text that was cut', () => {
  const KEY = 'k3y-0123456789abcdefghijklmnopqrstuvwxyz-end'
  const request = { secrets: { KEY } }
  const gap = '\n... 12 characters left out ...\n'

  test('a stream that ends inside a secret shows no piece of it', async () => {
    for (let length = 1; length <= KEY.length; length += 1) {
      const text = `${KEY}\n${KEY.slice(0, length)}`
      const { result: got } = await play([frame('stdout', { text }), frame('stderr', { text })], { request })
      const expected = `[redacted:KEY]\n${length < 4 ? KEY.slice(0, length) : '[redacted:KEY]'}`
      expect([got.stdout, got.stderr]).toEqual([expected, expected])
    }
  })

  test('of a whole secret and a longer piece of another the longer is named, and nothing of either is left', async () => {
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

  test('the head before a gap and the tail after it show no piece of a secret', async () => {
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

  test('each of several gaps is looked at, and a repetitive secret is found whole', async () => {
    const secrets = { A: 'aaaaaaab' }
    const text = `xaaab aaaa${gap}aaab${gap}aaaaa${gap}aab`
    const { result: got } = await play([log(text), done()], { request: { secrets } })
    expect(got.logs[0]?.message).toBe(`xaaab [redacted:A]${gap}[redacted:A]${gap}[redacted:A]${gap}aab`)
  })

  test('the form that JSON and repr write is found at a cut too', async () => {
    const written = JSON.stringify(SECRET).slice(1, -1)
    const text = `${written.slice(0, -3)}${gap}${written.slice(3)}`
    const { result: got } = await play([log(text), done()], { request: { secrets } })
    expect(got.logs[0]?.message).toBe(`${MARK}${gap}${MARK}`)
  })

  test('labels and levels at their greatest length are heads of something longer; warnings have gaps', async () => {
    const piece = KEY.slice(0, 20)
    const cut = (length: number): string => 'x'.repeat(length - piece.length) + piece
    const { result: got } = await play(
      [
        intermediate(cut(1024), 0),
        intermediate(cut(1023), 0),
        frame('log', { message: '', level: cut(64) }),
        done({}, { warnings: [{ code: 'c', message: `${cut(500)}${gap}${KEY.slice(20)}` }] }),
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

  test('the last words of a sandbox may be cut at either end', async () => {
    const message = `${KEY.slice(9)} died of ${KEY.slice(0, 9)}`
    const ending = { cause: 'exit', exitCode: 1, signal: null, by: 'harness', message } as const
    const { result: got } = await play([], { request, replay: { ending } })
    expect(got.ending.message).toBe('[redacted:KEY] died of [redacted:KEY]')
  })

  test('a value that is not cut keeps its ends', async () => {
    const { result: got } = await play([log(KEY.slice(0, 9)), result(KEY.slice(-9)), done()], { request })
    expect([got.logs[0]?.message, got.finalData]).toEqual([KEY.slice(0, 9), KEY.slice(-9)])
  })

  test('what is kept of a stream is never cut inside a marker', async () => {
    const MiB = 1024 * 1024
    const marker = '[redacted:KEY]'
    for (let over = 0; over <= marker.length + 1; over += 1) {
      const text = `${'é'.repeat(10)}${'x'.repeat(MiB - 20 - over)}${KEY} and more`
      const { result: got } = await play([frame('stdout', { text }), done()], {
        request,
        limits: { maxOutputBytes: 4 * MiB },
      })
      const shown = over < marker.length ? '' : marker + ' and more'.slice(0, over - marker.length)
      expect(got.stdout.slice(MiB - 10 - over)).toBe(shown)
      expect(got.truncated).toBe(true)
    }
  })

  test('costs time in proportion to its length', async () => {
    const long = `${'a'.repeat(100_000)}b`
    const text = `${'a'.repeat(200_000)}c${gap.repeat(10_000)}${'a'.repeat(99_000)}c`
    const started = performance.now()
    await play([error(text), frame('stdout', { text: `${'a'.repeat(99_000)}c` }), done()], {
      request: { secrets: { LONG: long } },
      limits: { maxOutputBytes: 4 * 1024 * 1024 },
    })
    expect(performance.now() - started).toBeLessThan(2000)
  })
})

describe('several secrets', () => {
  test('the longest wins, and of overlapping ones no piece is left', async () => {
    const several = { SHORT: 'abcd', LONG: 'abcdefgh', OVER: 'ghij-klm' }
    const text = 'abcd abcdefgh abcdefghij-klm xabcdx'
    const expected = '[redacted:SHORT] [redacted:LONG] [redacted:LONG] x[redacted:SHORT]x'
    for (let cut = 0; cut <= text.length; cut += 1) {
      const pieces = [text.slice(0, cut), text.slice(cut)].map((piece) => frame('stdout', { text: piece }))
      const { result: got } = await play([...pieces, log(text), done()], { request: { secrets: several } })
      expect([got.stdout, got.logs[0]?.message]).toEqual([expected, expected])
    }
  })

  test('one that repeats itself is one stretch', async () => {
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

test('SEC-009: a secret anywhere in a path is redacted, of a file that did not arrive whole too', async () => {
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

describe('a secret in the form that others give it is found (OR-06)', () => {
  /** `+` and `/` in base64, and all that URLs and JSON escape. */
  const VALUE = 'pä?>~/w0rd +"é😀\'(x)*&=\u007F'
  const MARKER = '[redacted:V]'
  const redactor = new Redactor({ V: VALUE })
  const bytes = Buffer.from(VALUE)

  test('in base64, wherever it stands in what was encoded, in both alphabets', () => {
    for (const encoding of ['base64', 'base64url'] as const) {
      for (let before = 0; before <= 6; before += 1) {
        for (let behind = 0; behind <= 6; behind += 1) {
          const encoded = Buffer.concat([Buffer.alloc(before, 'x'), bytes, Buffer.alloc(behind, 'y')]).toString(
            encoding,
          )
          const shown = redactor.text(`data:${encoded};`)
          expect(shown).toContain(MARKER)
          // What is left are the characters that also hold bits of what is around it.
          const left = shown.replace('data:', '').replace(MARKER, '').replace(/=*;$/, '')
          expect(left.length).toBeLessThanOrEqual(Math.ceil((before * 4) / 3) + Math.ceil((behind * 4) / 3) + 2)
        }
      }
    }
  })

  test('every offset of a secret of 4 characters, in a longer text', () => {
    const short = new Redactor({ V: 'kEy!' })
    for (const text of ['kEy!', 'user:kEy!', 'a:kEy!@host', 'xxkEy!yyy']) {
      const encoded = Buffer.from(text).toString('base64')
      expect(short.text(encoded)).toContain(MARKER)
      expect(short.text(`Authorization: Basic ${encoded}\n`)).toContain(MARKER)
    }
    expect(short.text(Buffer.from('kEy?').toString('base64'))).not.toContain(MARKER)
  })

  const quoted = encodeURIComponent(VALUE)
  const strict = quoted.replaceAll(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  const lower = (text: string): string => text.replaceAll(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase())
  const form = new URLSearchParams({ q: VALUE }).toString().slice('q='.length)
  const json = JSON.stringify(VALUE).slice(1, -1)
  const ascii = json.replaceAll(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
  test.each([
    ['encodeURIComponent', quoted],
    ['encodeURIComponent in lower case', lower(quoted)],
    ['quote of Python', strict.replaceAll('%2F', '/')],
    ['quote of Python that leaves no slash', strict],
    ['quote_plus of Python', strict.replaceAll('%20', '+')],
    ['a form', form],
    ['a form in lower case', lower(form)],
    ['JSON', json],
    ['JSON with escaped slashes', json.replaceAll('/', '\\/')],
    ['json.dumps of Python', ascii],
    ['JSON in ASCII with escaped slashes', ascii.replaceAll('/', '\\/')],
  ])('%s', (_, written) => {
    expect(redactor.text(`a=${written}&b`)).toBe(`a=${MARKER}&b`)
    for (let cut = 0; cut <= written.length; cut += 1) {
      const stream = redactor.stream()
      const told = stream.push(`a=${written.slice(0, cut)}`) + stream.push(`${written.slice(cut)}&b`) + stream.flush()
      expect(told).toBe(`a=${MARKER}&b`)
    }
    const single = redactor.stream()
    expect(Array.from(`a=${written}&b`, (unit) => single.push(unit)).join('') + single.flush()).toBe(`a=${MARKER}&b`)
  })

  test('what Python itself writes', async () => {
    const program = `import sys, json, base64, urllib.parse as u
v = sys.argv[1]
b = v.encode()
forms = [json.dumps(v), u.quote(v), u.quote(v, safe=''), u.quote_plus(v), u.urlencode({'q': v})]
forms += [f(b'x' * n + b + b'y').decode() for f in (base64.b64encode, base64.urlsafe_b64encode) for n in (0, 1, 2)]
print('\\n'.join(forms))`
    const { stdout } = await promisify(execFile)('python3', ['-c', program, VALUE])
    const lines = stdout.trimEnd().split('\n')
    expect(lines.length).toBe(11)
    expect(lines.filter((line) => !redactor.text(line).includes(MARKER))).toEqual([])
  })

  test('in two pieces of stdout, wherever base64 is cut', async () => {
    const encoded = Buffer.from(`user:${VALUE}`).toString('base64')
    const expected = redactor.text(`${encoded}\n`)
    expect(expected).toContain(MARKER)
    for (let cut = 0; cut <= encoded.length; cut += 1) {
      const pieces = [encoded.slice(0, cut), `${encoded.slice(cut)}\n`].map((text) => frame('stdout', { text }))
      const { result: got } = await play([...pieces, done()], { request: { secrets: { V: VALUE } } })
      expect(got.stdout).toBe(expected)
    }
  })

  test('in keys, tracebacks and files', async () => {
    const encoded = bytes.toString('base64')
    const content = Buffer.from(`x${encoded}`)
    const file = frame('file', {
      path: 'out/a',
      size: content.length,
      offset: 0,
      content_base64: content.toString('base64'),
    })
    const { result: got } = await play(
      [intermediate('m', { [quoted]: ascii }), file, error(quoted, { traceback: `Traceback ${encoded}` }), done()],
      { request: { secrets: { V: VALUE }, collect: ['out/**'] } },
    )
    expect(got.intermediates).toEqual([{ label: 'm', data: { [MARKER]: MARKER } }])
    expect(got.error).toBe(MARKER)
    expect(got.traceback).toMatch(/^Traceback \[redacted:V\]\S{0,4}$/)
    expect(got.warnings.map(({ code }) => code)).toEqual(['secret_in_file'])
  })

  test('a secret that is no well-formed text is one all the same', () => {
    const odd = new Redactor({ V: 'half-\uD83D-pair' })
    expect(odd.text('a half-\uD83D-pair b')).toBe(`a ${MARKER} b`)
  })

  test('a text that was cut within base64 shows no piece of it', () => {
    const encoded = bytes.toString('base64')
    expect(redactor.text(`data ${encoded.slice(0, 9)}`, { end: true })).toBe(`data ${MARKER}`)
  })
})
