import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { Redactor } from '../../../src/redaction/index.ts'
import { done, error, frame, intermediate, play } from './wire.ts'

const WRITE_FORMS = `import sys, json, base64, urllib.parse as u
v = sys.argv[1]
b = v.encode()
forms = [json.dumps(v), u.quote(v), u.quote(v, safe=''), u.quote_plus(v), u.urlencode({'q': v})]
forms += [f(b'x' * n + b + b'y').decode() for f in (base64.b64encode, base64.urlsafe_b64encode) for n in (0, 1, 2)]
print('\\n'.join(forms))`
const RAISE_ERRORS = `import sys, ast, configparser
def message_of(act, v):
    try:
        act(v)
    except Exception as error:
        import traceback
        return traceback.format_exc()
acts = [eval, exec, ast.literal_eval, configparser.ConfigParser().read_string]
for act in acts: print(message_of(act, sys.argv[1]), end='\\0')`

async function runPython(program: string, argument: string): Promise<string> {
  return (await promisify(execFile)('python3', ['-c', program, argument])).stdout
}

describe('finds a secret in every encoding (OR-06)', () => {
  /** A secret with `+` and `/` in base64, and with characters that URLs and JSON escape. */
  const VALUE = 'pä?>~/w0rd +"é😀\'(x)*&=\u007F'
  const MARKER = '[redacted:V]'
  const redactor = new Redactor({ V: VALUE })
  const bytes = Buffer.from(VALUE)

  test('in base64, at any offset of the encoded text, in both alphabets', () => {
    for (const encoding of ['base64', 'base64url'] as const) {
      for (let before = 0; before <= 6; before += 1) {
        for (let behind = 0; behind <= 6; behind += 1) {
          const encoded = Buffer.concat([Buffer.alloc(before, 'x'), bytes, Buffer.alloc(behind, 'y')]).toString(
            encoding,
          )
          const shown = redactor.text(`data:${encoded};`)
          expect(shown).toContain(MARKER)
          // Only characters that also encode bits of the surrounding text remain.
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

  /** A secret of several lines. */
  const LINES = 'pass"w\\ord=Kx9Tv\'é1 zz\n  second_l"ine: 0123456789abc\nx=1'
  let forms: readonly string[]
  let errors: readonly string[]
  // Not in the tests: the start of Python takes seconds on a busy machine.
  beforeAll(async () => {
    const [written, raised] = await Promise.all([runPython(WRITE_FORMS, VALUE), runPython(RAISE_ERRORS, LINES)])
    forms = written.trimEnd().split('\n')
    errors = raised.split('\0').slice(0, -1)
  })

  test('in the forms that Python writes', () => {
    expect(forms.length).toBe(11)
    expect(forms.filter((line) => !redactor.text(line).includes(MARKER))).toEqual([])
  })

  test('in an error of Python that quotes one line of it', () => {
    const hider = new Redactor({ V: LINES })
    expect(errors.map((text) => /Kx9Tv/.test(text))).toEqual([true, true, true, true])
    expect(
      errors.map((text) => hider.text(text)).filter((text) => !text.includes(MARKER) || /Kx9Tv|zz/.test(text)),
    ).toEqual([])
    expect(hider.text(`[1] second_l"ine: 0123456789abc`)).toBe(`[1] ${MARKER}`)
    // A short line is in many texts.
    expect(hider.text('x=1')).toBe('x=1')
    expect(hider.text(`<${LINES}>`)).toBe(`<${MARKER}>`)
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

  test('redacts a secret that is not well-formed Unicode', () => {
    const odd = new Redactor({ V: 'half-\uD83D-pair' })
    expect(odd.text('a half-\uD83D-pair b')).toBe(`a ${MARKER} b`)
  })

  test('a text that was cut within base64 shows no part of it', () => {
    const encoded = bytes.toString('base64')
    expect(redactor.text(`data ${encoded.slice(0, 9)}`, { end: true })).toBe(`data ${MARKER}`)
  })
})
